type Values = ReadonlyMap<string, string>;

/** What a session has set, and what SET LOCAL has laid over it until the transaction ends. */
export interface ScopedValues {
  readonly session: Values;
  readonly local: Values;
}

const NONE: Values = new Map();

/** Values of settings by lower-case name, as transactions keep them or take them back. */
export class SettingScopes {
  #state: ScopedValues;
  /** What the transaction began with; outside of one it is `#state`. */
  #before: ScopedValues;
  #values: Values;
  #changed = false;

  constructor(session: Values) {
    this.#state = { session, local: NONE };
    this.#before = this.#state;
    this.#values = session;
  }

  /** What is in force. Another map once something has changed. */
  get values(): Values {
    return this.#values;
  }

  set(name: string, value: string, local: boolean): void {
    const { session } = this.#state;
    const laid = new Map(this.#state.local);
    if (local) {
      laid.set(name, value);
      this.#become({ session, local: laid });
    } else {
      laid.delete(name);
      this.#become({ session: new Map([...session, [name, value]]), local: laid });
    }
  }

  /** The transaction, if there is one, has ended well: what was local to it is gone. */
  commit(): void {
    if (this.#state.local.size > 0) this.#become({ session: this.#state.session, local: NONE });
    this.#before = this.#state;
  }

  /** What is set now, for a savepoint. */
  get state(): ScopedValues {
    return this.#state;
  }

  /** Takes back what was set since the savepoint, or in the whole transaction. */
  rollback(to: ScopedValues = this.#before): void {
    this.#become(to);
  }

  /** Whether anything has changed since this was last asked. */
  takeChanged(): boolean {
    const changed = this.#changed;
    this.#changed = false;
    return changed;
  }

  #become(state: ScopedValues): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#values = state.local.size === 0 ? state.session : new Map([...state.session, ...state.local]);
    this.#changed = true;
  }
}
