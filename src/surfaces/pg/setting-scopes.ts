type Values = ReadonlyMap<string, string>;

/** What a session has set, and what SET LOCAL has laid over it until the transaction ends. */
interface State {
  readonly session: Values;
  readonly local: Values;
}

const NONE: Values = new Map();

/** Values of settings by lower-case name, as transactions and savepoints keep them or take them back. */
export class SettingScopes {
  #state: State;
  /** What the transaction began with; the same as `#state` outside of one. */
  #before: State;
  #saves: { readonly name: string; readonly state: State }[] = [];
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
    if (this.#saves.length > 0) this.#saves = [];
  }

  rollback(): void {
    this.#become(this.#before);
    this.#saves = [];
  }

  save(name: string): void {
    this.#saves.push({ name, state: this.#state });
  }

  release(name: string): void {
    this.#saves.length = Math.max(0, this.#indexOf(name));
  }

  rollbackTo(name: string): void {
    const at = this.#indexOf(name);
    const save = this.#saves[at];
    if (save === undefined) return;
    this.#saves.length = at + 1;
    this.#become(save.state);
  }

  /** A statement failed: what was set since the last savepoint, or in the transaction, is taken back. */
  fail(): void {
    this.#become(this.#saves.at(-1)?.state ?? this.#before);
  }

  /** Whether anything has changed since this was last asked. */
  takeChanged(): boolean {
    const changed = this.#changed;
    this.#changed = false;
    return changed;
  }

  #become(state: State): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#values = state.local.size === 0 ? state.session : new Map([...state.session, ...state.local]);
    this.#changed = true;
  }

  #indexOf(name: string): number {
    return this.#saves.findLastIndex((s) => s.name === name);
  }
}
