import { error, type TransactionStatus } from '../../../wire/index.js';

/** The transaction block of one session, as the protocol shows it. Everything in it is read-only. */
export class TransactionBlock {
  #status: TransactionStatus = 'I';
  #savepoints: string[] = [];

  get status(): TransactionStatus {
    return this.#status;
  }

  begin(): void {
    if (this.#status === 'I') this.#status = 'T';
  }

  /** Ends the block; true if it had failed, so that COMMIT answers ROLLBACK. */
  end(): boolean {
    const failed = this.#status === 'E';
    this.#status = 'I';
    this.#savepoints = [];
    return failed;
  }

  fail(): void {
    if (this.#status === 'T') this.#status = 'E';
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
    this.#savepoints.push(name);
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
  }

  #requireBlock(command: string): void {
    if (this.#status === 'I') throw error('25P01', `${command} can only be used in transaction blocks`);
  }

  #indexOf(name: string): number {
    const index = this.#savepoints.lastIndexOf(name);
    if (index < 0) throw error('3B001', `savepoint "${name}" does not exist`);
    return index;
  }
}
