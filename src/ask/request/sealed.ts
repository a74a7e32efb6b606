/**
 * A value that surfaces hold and pass back to `src/ask` but cannot read; its content is in a private field.
 *
 * INVARIANT: only `src/ask` opens it, since the build omits `open` from the types that other modules see.
 */
export class SealedValue<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
    Object.freeze(this);
  }

  /** Returns the content. @internal */
  static open<T>(sealed: SealedValue<T>): T {
    return sealed.#value;
  }
}
