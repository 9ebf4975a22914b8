"""For the reference: parameters of methods are documented where they are declared, `param(default, "what it is")`."""

import griffe


class Parameters(griffe.Extension):
    """Show `name = param(default, doc)` as an attribute with that default and that documentation."""

    def on_attribute(self, *, attr: griffe.Attribute, **_: object) -> None:
        """Take a declaration apart."""
        match attr.value:
            case griffe.ExprCall(function=griffe.ExprName(name="param"), arguments=[default, str(doc), *_]):
                attr.value = default
                attr.docstring = griffe.Docstring(doc.strip("\"'"), parent=attr)
