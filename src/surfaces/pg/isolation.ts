import { error } from '../../../wire/index.js';
import { type RunningParts, Snapshots } from '../../ask/index.js';
import type { SessionSettings } from './settings.js';

const LEVEL = 'transaction_isolation';
const DEFAULT = 'default_transaction_isolation';
const KEPT = new Map([
  ['repeatable read', 'REPEATABLE READ'],
  ['serializable', 'SERIALIZABLE'],
] as const);

/** Isolation levels of one session: in a block of a higher level all statements read one snapshot. */
export class Isolation {
  readonly #service: Pick<RunningParts, 'engines'>;
  readonly #settings: SessionSettings;
  #snapshots: Snapshots | null = null;
  /** True once the block has run a data query. */
  #asked = false;
  /** Level of the block. Kept if the block fails, although its settings are rolled back. */
  #level: string | null = null;

  constructor(service: Pick<RunningParts, 'engines'>, settings: SessionSettings) {
    this.#service = service;
    this.#settings = settings;
  }

  /** Starts a block at `level`, or at the session's default. @throws WireError 0A000, 22023 */
  begin(level: string | null): void {
    const wanted = level ?? this.#settings.show(DEFAULT).value;
    this.#requireKept(wanted);
    this.#settings.set(LEVEL, wanted, true);
    this.#level = wanted;
  }

  /** Level for a block that is chained to this one. */
  get level(): string | null {
    return this.#level;
  }

  /** Checks an isolation level before it is set. @throws WireError 0A000, 25001 */
  judge(name: string, value: string): void {
    const key = name.toLowerCase();
    if (key !== LEVEL && key !== DEFAULT) return;
    this.#requireKept(value);
    if (key === LEVEL && this.#asked && value.toLowerCase() !== this.#settings.show(LEVEL).value)
      throw error('25001', 'SET TRANSACTION ISOLATION LEVEL must be called before any query');
    if (key === LEVEL) this.#level = value;
  }

  /** Snapshots for a data statement; null if it reads the data committed at its start. */
  snapshots(inBlock: boolean, subject: string): Snapshots | null {
    if (!inBlock) return null;
    this.#asked = true;
    const level = KEPT.get(this.#settings.show(LEVEL).value as 'serializable'); // undefined for the other levels
    if (level === undefined) return null;
    this.#snapshots ??= new Snapshots(level, subject);
    return this.#snapshots;
  }

  end(): void {
    this.#asked = false;
    this.#snapshots?.end();
    this.#snapshots = null;
  }

  /** The embedded engine has a single session, which no client may hold for a whole transaction. */
  #requireKept(level: string): void {
    if (!KEPT.has(level.toLowerCase() as 'serializable')) return;
    if ([...this.#service.engines.values()].every((e) => e.kind === 'postgres')) return;
    throw error('0A000', `isolation level "${level.toLowerCase()}" is not supported on the embedded engine`, {
      hint: 'ask in READ COMMITTED, or use a native Postgres',
    });
  }
}
