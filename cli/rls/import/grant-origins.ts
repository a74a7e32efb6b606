import type { GrantDocument } from '../../../policy/document.js';

/** The names of the database's policies from which grants were made. */
export class GrantOrigins {
  readonly #names = new Map<string, Set<string>>();

  /** @param filter null: all rows */
  add(role: string, entity: string, filter: string | null, policy: string): void {
    const key = keyOf(role, entity, filter);
    this.#names.set(key, (this.#names.get(key) ?? new Set()).add(policy));
  }

  /** The policies of a grant, such as `team, own`; null if it is of none, as where there is no row security. */
  of(role: string, { on, rows }: GrantDocument): string | null {
    const names = this.#names.get(keyOf(role, on, rows ?? null));
    return names === undefined ? null : [...names].join(', ');
  }
}

const keyOf = (role: string, entity: string, filter: string | null): string =>
  JSON.stringify([role, entity, filter]);
