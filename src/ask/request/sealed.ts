/**
 * A value that passes through modules that may not use it: they hold it, and hand it back to ask. Its content is
 * private at run time too.
 *
 * INVARIANT: only service start makes one, and only ask and the service open one: no index exports this module.
 */
export class SealedValue<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
    Object.freeze(this);
  }

  static open<T>(sealed: SealedValue<T>): T {
    return sealed.#value;
  }
}
