"""How far labels can be trusted, by rehearsals on held-out seen classes.

`rehearse` fits a method to problems whose pools have known classes. The results tell how many labels of this method on
these data are right (`Forecast`), how sure a single one is (`Confidence`), and which γ to take in GZSL. `suggest`
chooses what a person should label next.
"""

from pren.trust.assessment import TRUST_FILE, Trust, assess
from pren.trust.confidence import Confidence
from pren.trust.familiarity import STRANGE, Familiarity
from pren.trust.forecast import Forecast
from pren.trust.labels import Labels, label_pool, only_sure
from pren.trust.rehearsal import OnRehearsal, Rehearsal, rehearse, usual_draws
from pren.trust.suggestion import suggest

__all__ = [
    "STRANGE",
    "TRUST_FILE",
    "Confidence",
    "Familiarity",
    "Forecast",
    "Labels",
    "OnRehearsal",
    "Rehearsal",
    "Trust",
    "assess",
    "label_pool",
    "only_sure",
    "rehearse",
    "suggest",
    "usual_draws",
]
