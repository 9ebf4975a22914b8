"""CUB, SUN and AWA2, as researchers download them."""
