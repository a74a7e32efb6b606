import type { FrontendEncoder } from './protocol/encoder.js';

export interface PreparedUpstream {
  readonly name: string;
  /** Column type OIDs from the upstream's description; null until it arrives. */
  columnOids: readonly number[] | null;
}

/** LRU cache of a session's named prepared statements, by SQL text. */
export class PreparedStatements {
  readonly #limit: number;
  readonly #bySql = new Map<string, PreparedUpstream>();
  #counter = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Finds the statement for `sql` and marks it as most recently used. */
  find(sql: string): PreparedUpstream | undefined {
    const found = this.#bySql.get(sql);
    if (found !== undefined && this.#bySql.size > this.#limit / 2) {
      this.#bySql.delete(sql);
      this.#bySql.set(sql, found);
    }
    return found;
  }

  /** Appends Parse and Describe for `sql`, and Close for an evicted statement. */
  prepare(out: FrontendEncoder, sql: string, parameterOids: readonly number[]): PreparedUpstream {
    this.#makeRoom(out);
    const statement: PreparedUpstream = { name: `osl${++this.#counter}`, columnOids: null };
    out.parse(statement.name, sql, parameterOids);
    out.describeStatement(statement.name);
    this.#bySql.set(sql, statement);
    return statement;
  }

  /** Removes `statement` from the cache; in the upstream, it remains until the session ends. */
  forget(sql: string, statement: PreparedUpstream): void {
    if (this.#bySql.get(sql) === statement) this.#bySql.delete(sql);
  }

  /** Removes `statement` from the cache and closes it in the upstream. */
  close(out: FrontendEncoder, sql: string, statement: PreparedUpstream): void {
    this.forget(sql, statement);
    out.closeStatement(statement.name);
  }

  #makeRoom(out: FrontendEncoder): void {
    if (this.#bySql.size < this.#limit) return;
    for (const [sql, oldest] of this.#bySql) {
      this.#bySql.delete(sql);
      out.closeStatement(oldest.name);
      return;
    }
  }
}
