import { error, type TransactionStatus } from '../../../wire/index.js';
import type { ScopedValues, SettingScopes } from './setting-scopes.js';

/**
 * The transaction block of one session, as the protocol shows it, and the settings that its end and its savepoints keep
 * or take back. Everything else in it is read-only.
 */
export class TransactionBlock {
  readonly #settings: SettingScopes;
  #status: TransactionStatus = 'I';
  #savepoints: { readonly name: string; readonly settings: ScopedValues }[] = [];

  constructor(settings: SettingScopes) {
    this.#settings = settings;
  }

  get status(): TransactionStatus {
    return this.#status;
  }

  begin(): void {
    if (this.#status === 'I') this.#status = 'T';
  }

  /** Ends the block; true if it is committed, which one that has failed cannot be. */
  end(how: 'commit' | 'rollback'): boolean {
    const committed = how === 'commit' && this.#status !== 'E';
    this.#status = 'I';
    this.#savepoints = [];
    if (committed) this.#settings.commit();
    else this.#settings.rollback();
    return committed;
  }

  /** A statement failed: what was set since the last savepoint, or in the transaction, is taken back. */
  fail(): void {
    if (this.#status === 'T') this.#status = 'E';
    this.#settings.rollback(this.#savepoints.at(-1)?.settings);
  }

  /** @throws WireError 25P02 in a failed block */
  requireUsable(): void {
    if (this.#status === 'E') {
      throw error('25P02', 'current transaction is aborted, commands ignored until end of transaction block');
    }
  }

  save(name: string): void {
    this.#requireBlock('SAVEPOINT');
    this.requireUsable();
    this.#savepoints.push({ name, settings: this.#settings.state });
  }

  release(name: string): void {
    this.#requireBlock('RELEASE SAVEPOINT');
    this.requireUsable();
    this.#savepoints.length = this.#indexOf(name);
  }

  rollbackTo(name: string): void {
    this.#requireBlock('ROLLBACK TO SAVEPOINT');
    this.#savepoints.length = this.#indexOf(name) + 1;
    this.#status = 'T';
    this.#settings.rollback(this.#savepoints.at(-1)?.settings);
  }

  #requireBlock(command: string): void {
    if (this.#status === 'I') throw error('25P01', `${command} can only be used in transaction blocks`);
  }

  #indexOf(name: string): number {
    const index = this.#savepoints.findLastIndex((s) => s.name === name);
    if (index < 0) throw error('3B001', `savepoint "${name}" does not exist`);
    return index;
  }
}
