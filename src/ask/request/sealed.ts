/**
 * A value that surfaces hold and pass back to ask but cannot read; its content is private at run time, too.
 *
 * INVARIANT: only ask opens one, since the build omits `open` from the types that other rooms see.
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
