"""What the steps about repositories of Mercurial share: the fixtures, and a case for a point."""

from harness.mercurial import MercurialCase, MercurialFixtures
from harness.runner import Lab, Step
from harness.sandbox import Sandbox


class MercurialStep(Step):
    """A step whose points are commands on repositories of Mercurial and git."""

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.fixtures = MercurialFixtures(lab)

    def missing(self) -> str | None:
        return MercurialFixtures.missing()

    def case(self, sandbox: Sandbox) -> MercurialCase:
        """Returns the repositories of a point."""
        return MercurialCase(self.fixtures, sandbox.root, sandbox.case)

    def undisturbed_case(self) -> MercurialCase:
        """Makes the fixtures, and returns the repositories for runs without a fault."""
        self.fixtures.make()
        return self.case(self.lab.sandbox("expect"))
