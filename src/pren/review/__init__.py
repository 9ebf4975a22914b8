"""The page to settle labels in, and the service that predicts: one application on one address.

The front end in `static/` is of small modules without a build step. `preact-htm.js` is the standalone module of htm
3.1.1 (Apache-2.0, `htm-LICENSE.txt`), which has Preact in it (MIT, `preact-LICENSE.txt`); both are unchanged.
"""
