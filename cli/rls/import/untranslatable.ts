/** A part of a policy that has no equivalent in a policy file. The message is its reason. */
export class Untranslatable extends Error {
  override readonly name = 'Untranslatable';
}

/** A policy that fails in the database, so that every query of its table does. */
export class FailingPolicy extends Untranslatable {}
