"""Stands in for `jupyterhub.roles`: roles that are made and given over the API of the hub."""

from . import orm
from .api import ApiError
from .excluded import exclude


def create_role(db, definition):
    if not definition["name"]:
        raise ValueError("a role without a name")
    if definition["name"] == "user" and not orm._app.has_bare_users:
        # What the configuration says of every user, the API cannot change.
        orm._app.__dict__["scopes_of_users"] = definition["scopes"]
        return
    try:
        orm.Role(name=definition["name"])._store(
            definition.get("scopes", []), definition.get("description", "")
        )
    except ApiError as error:
        raise ValueError(str(error)) from error


def delete_role(db, name):
    orm.Role(name=name)._delete()


def grant_role(db, entity, role=None, rolename=None, **_):
    role = orm.as_role(role or rolename)
    if role.name == "admin" and isinstance(entity, orm.User):
        entity.admin = True
    elif role.name != "user" or not isinstance(entity, orm.User) or role not in entity.roles:
        role._assign(entity)


def strip_role(db, entity, role=None, rolename=None, **_):
    role = orm.as_role(role or rolename)
    if role.name == "admin" and isinstance(entity, orm.User):
        entity.admin = False
    else:
        role._take(entity)


def update_roles(db, entity, roles):
    for role in roles:
        grant_role(db, entity, role)


def assign_default_roles(db, entity):
    grant_role(db, entity, "user")


def roles_to_scopes(roles):
    return {scope for role in roles for scope in role.scopes}


def roles_to_expanded_scopes(roles, owner):
    from jupyterhub import scopes

    return scopes.expand_scopes(roles_to_scopes(roles), owner=owner)


def get_roles_for(entity):
    groups = entity.groups if isinstance(entity, orm.User) else []
    return [*entity.roles, *(role for group in groups for role in group.roles)]


def get_default_roles():
    return []


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_, **__):
        exclude(f"roles.{name}()")

    return missing
