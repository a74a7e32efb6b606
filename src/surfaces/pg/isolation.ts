import { error } from '../../../wire/index.js';
import { type RunningParts, Snapshots } from '../../ask/index.js';
import type { SessionSettings } from './settings.js';

const LEVEL = 'transaction_isolation';
const DEFAULT = 'default_transaction_isolation';
const KEPT = new Map([
  ['repeatable read', 'REPEATABLE READ'],
  ['serializable', 'SERIALIZABLE'],
] as const);

/** Which state of the data the statements of one session see: in a block of a higher level all see the same. */
export class Isolation {
  readonly #service: Pick<RunningParts, 'engines'>;
  readonly #settings: SessionSettings;
  #snapshots: Snapshots | null = null;
  /** Whether the block has asked for data. */
  #asked = false;
  /** The level of the block, which keeps it when it fails, though its settings are taken back. */
  #level: string | null = null;

  constructor(service: Pick<RunningParts, 'engines'>, settings: SessionSettings) {
    this.#service = service;
    this.#settings = settings;
  }

  /** A block begins at `level`, or at the session's own. @throws WireError 0A000, 22023 */
  begin(level: string | null): void {
    const wanted = level ?? this.#settings.show(DEFAULT).value;
    this.#requireKept(wanted);
    this.#settings.set(LEVEL, wanted, true);
    this.#level = wanted;
  }

  /** The level with which a block begins that is chained to this one. */
  get level(): string | null {
    return this.#level;
  }

  /** Before a level is set. @throws WireError 0A000, 25001 */
  judge(name: string, value: string): void {
    const key = name.toLowerCase();
    if (key !== LEVEL && key !== DEFAULT) return;
    this.#requireKept(value);
    if (key === LEVEL && this.#asked && value.toLowerCase() !== this.#settings.show(LEVEL).value)
      throw error('25001', 'SET TRANSACTION ISOLATION LEVEL must be called before any query');
    if (key === LEVEL) this.#level = value;
  }

  /** The snapshots that a statement about data reads in; null where it sees what is committed when it begins. */
  snapshots(inBlock: boolean, subject: string): Snapshots | null {
    if (!inBlock) return null;
    this.#asked = true;
    const level = KEPT.get(this.#settings.show(LEVEL).value as 'serializable'); // or undefined
    if (level === undefined) return null;
    this.#snapshots ??= new Snapshots(level, subject);
    return this.#snapshots;
  }

  /** The block is over. */
  end(): void {
    this.#asked = false;
    this.#snapshots?.end();
    this.#snapshots = null;
  }

  /** A level that is taken is kept: the embedded engine has one session, which no client may hold. */
  #requireKept(level: string): void {
    if (!KEPT.has(level.toLowerCase() as 'serializable')) return;
    if ([...this.#service.engines.values()].every((e) => e.kind === 'postgres')) return;
    throw error('0A000', `isolation level "${level.toLowerCase()}" is not supported on the embedded engine`, {
      hint: 'ask in READ COMMITTED, or use a native Postgres',
    });
  }
}
