/**
 * A value that surfaces hold and pass back to ask without access to its content, which is private at run time too.
 *
 * INVARIANT: only ask opens one: the build leaves `open` out of the types that other rooms see.
 */
export class SealedValue<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
    Object.freeze(this);
  }

  /** @internal */
  static open<T>(sealed: SealedValue<T>): T {
    return sealed.#value;
  }
}
