import pytest

from searchsvc.languages import (
    CODES,
    FUNCTION_WORDS,
    foreign_share,
    ideograph_share,
    language_of,
    language_of_question,
)

QUESTIONS = {
    "en": ["how do I lock the dependencies of a project", "what is the default port"],
    "de": [
        "wie kann ich die Abhängigkeiten eines Projekts sperren",
        "Was ist der Standardport für den Server?",
    ],
    "es": ["cómo se bloquean las dependencias de un proyecto", "¿Cuál es el puerto por defecto?"],
    "fr": ["comment verrouiller les dépendances d'un projet", "quel est le port par défaut de la machine"],
    "zh": ["如何锁定项目的依赖", "认证系统怎么更新 JWT 令牌"],
    "ja": ["依存関係をロックする方法は何ですか", "デフォルトのポートはどれですか"],
    "ru": ["как установить пакет для всех пользователей", "Что нового в Python 3.12?"],
    "uk": ["як встановити пакет для всіх користувачів", "Що нового у версії, її зміни?"],
    "el": ["πώς εγκαθιστώ ένα πακέτο για όλους", "Τι νέο υπάρχει στην Python;"],
    "he": ["איך מתקינים חבילה לכל המשתמשים", "מה חדש בגרסה?"],
    "ar": ["كيف أثبت حزمة لجميع المستخدمين", "ما الجديد في الإصدار؟"],
    "fa": ["چگونه یک بسته را برای همه نصب کنم", "پورت پیش‌فرض چیست؟"],
    "hi": ["सभी उपयोगकर्ताओं के लिए पैकेज कैसे स्थापित करें", "डिफ़ॉल्ट पोर्ट क्या है?"],
    "th": ["ติดตั้งแพ็กเกจสำหรับผู้ใช้ทุกคนอย่างไร", "พอร์ตเริ่มต้นคืออะไร"],
    "ko": ["프로젝트의 의존성을 잠그는 방법은 무엇입니까", "기본 포트는 무엇인가요"],
}


@pytest.mark.proves("R-languages")
@pytest.mark.parametrize(
    ("language", "question"), [(code, text) for code, texts in QUESTIONS.items() for text in texts]
)
def test_a_question_is_known_by_its_function_words_or_its_script(language, question):
    assert language_of_question(question) == language


@pytest.mark.parametrize(
    "question",
    ["pip install --no-deps", "uv.lock", "tomatoes", "", "   ", "???", "ERR_CONNECTION_REFUSED 502",
     "kubectl get pods -n kube-system", "config", "x"],
)  # fmt: skip
def test_code_and_single_words_are_of_no_other_language_than_english(question):
    assert language_of_question(question) in ("", "en")


def test_an_english_question_with_a_foreign_name_stays_english():
    assert language_of_question("who was the founder of La Liga de la Justicia") == "en"


def test_a_foreign_word_or_two_ideographs_in_a_long_english_text_change_nothing():
    text = "The word 认证 is how the manual names the authentication of users in this system. " * 3
    assert language_of(text) == "en"


def test_the_share_of_ideographs_is_among_letters():
    assert ideograph_share("认证") == 1.0
    assert ideograph_share("认证ab") == 0.5
    assert ideograph_share("12 !?") == 0.0
    assert ideograph_share("plain") == 0.0


def test_letters_that_are_not_latin_are_foreign_and_signs_are_no_letters():
    assert foreign_share("plain, naïve") == 0.0
    assert foreign_share("12 – !?") == 0.0
    assert foreign_share("слово") == 1.0
    assert foreign_share("abc 认证字") == 0.5


def test_a_letter_of_a_formula_changes_nothing():
    assert language_of("The angle α of the wing and the density ρ of the air are given in the table.") == "en"


def test_every_language_with_function_words_has_a_code():
    assert set(FUNCTION_WORDS) <= set(CODES)
    assert CODES[0] == ""
