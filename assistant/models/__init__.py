"""Which models there are, where they come from and where they lie on this machine."""

from assistant.models.catalogue import Catalogue, Model, load_catalogue
from assistant.models.errors import ModelError
from assistant.models.store import Store, find_model

__all__ = ["Catalogue", "Model", "ModelError", "Store", "find_model", "load_catalogue"]
