/** A part of a policy that has no equivalent in a policy file. The message is its reason. */
export class Untranslatable extends Error {
  override readonly name = 'Untranslatable';
}

/** A part that fails for the role, and with it every query over the table: so the role sees nothing of it. */
export class FailsInDatabase extends Untranslatable {}
