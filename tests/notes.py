"""A small vault that tests share, and the ways to open it."""

from pathlib import Path

from searchsvc.config import Config, make_root
from searchsvc.service import Service

NOTES = {
    "garden/tomatoes.md": "---\ntags: [garden, food]\nstatus: growing\n---\n# Tomatoes\n\n"
    "An overview of tomatoes.\n\n"
    "## Watering\n\nWater tomatoes deeply twice a week, in the morning, at the root.\n\n"
    "## Blight\n\nBrown spots on the leaves spread after rain. Remove the leaves and keep the plants dry.\n",
    "garden/compost.md": "---\ntags: garden/soil\n---\n# Compost\n\nTurn the heap every two weeks. "
    "It feeds the [watering of tomatoes](tomatoes.md#watering).\n\n## Heat\n\n"
    "A good heap reaches sixty degrees.\n",
    "kitchen/soup.md": "# Soup\n\n## Stock\n\nSimmer bones for six hours.\n\n## Tomato soup\n\n"
    "Roast ripe tomatoes, then blend them with stock. See [[tomatoes#Watering|growing them]].\n",
    "ops/runbook.md": "---\naliases: [oncall handbook]\n---\n# Runbook\n\n## Database failover\n\n"
    "When the primary database is down, promote the replica with `promote_replica --force`.\n\n"
    "## Rotating keys\n\n"
    "Credentials are renewed every ninety days; the old ones stop working an hour later.\n",
    "ops/设置.md": "# 设置\n\n## 认证\n\n认证系统使用JWT令牌。令牌每小时更新一次。\n",
    "index.md": "# Home\n\n- [[tomatoes]]\n- [[Runbook]]\n- [[soup]]\n",
}


def write_notes(folder: Path, notes: dict[str, str] = NOTES) -> Path:
    for path, text in notes.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return folder


def open_service(folder: Path, data: Path, *, model: str = "none", **settings) -> Service:
    config = Config(
        roots=(make_root(folder, "notes"),),
        data_dir=data,
        model=model,
        instant_model=settings.pop("instant_model", "none"),
        **settings,
    )
    return Service(config)
