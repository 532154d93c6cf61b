"""Names of policies of packages beside the core, where these packages are there."""

from importlib.util import find_spec

from simmodel.foundation.packages import offered

__all__ = ["there"]


def there(*names: str) -> tuple[str, ...]:
    """Return the names, with their parameters, of the policies whose packages can be imported."""
    found = offered("simmodel.policies")
    modules = {name: found.get(name.partition("(")[0], "").partition(":")[0].partition(".")[0] for name in names}
    return tuple(name for name, module in modules.items() if module and find_spec(module))
