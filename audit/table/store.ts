import { randomBytes } from 'node:crypto';
import {
  AuditDamaged,
  AuditLocked,
  type AuditRecord,
  AuditUnavailable,
  beginningOf,
  Fingerprints,
  Frontier,
  framesOf,
  keepSegmentKey,
  type LogSource,
  type LogStore,
  type NoteStore,
  type ReadingQueue,
  type RecoverBase,
  type RecoveredLog,
  type RecoverOptions,
  type RetirementPlan,
  recoverLog,
  type SegmentHeader,
  type SegmentStore,
  type Signer,
  splitHashes,
} from '../index.js';
import {
  bytes,
  connectTable,
  type ResultRow,
  type TableSession,
  type TableUrl,
  tableSource,
  text,
} from './reader.js';

export interface TableOptions {
  readonly url: TableUrl;
  /** Directory that stores the HMAC keys for fingerprints. */
  readonly dir: string;
  readonly segmentBytes: number;
  /** Statement timeout, ms. */
  readonly deadlineMs: number;
}

/**
 * Audit log in Postgres tables. The connection that inserts records also holds the lock, so a process that loses the
 * lock can no longer insert.
 */
export class TableStore implements LogStore {
  readonly readings: ReadingQueue = tableReadings(() => this.#connected());
  readonly #options: TableOptions;
  #session: TableSession | null = null;
  #writer = '';
  #state: LogState = { epoch: 0, open: new Map() };

  constructor(options: TableOptions) {
    this.#options = options;
  }

  get source(): LogSource {
    return tableSource(this.#connected(), this.#writer);
  }

  async recover(signer: Signer, options: RecoverOptions = {}): Promise<RecoveredLog> {
    try {
      return await this.#recover(signer, options);
    } catch (error) {
      if (error instanceof AuditDamaged || error instanceof AuditLocked) throw error;
      const why = error instanceof Error ? error.message : String(error);
      const hint = 'osl audit table prints what makes them';
      throw new AuditUnavailable(
        'disk',
        `the tables of the audit log cannot be used: ${why} (${hint})`,
        error,
      );
    }
  }

  async #recover(signer: Signer, options: RecoverOptions): Promise<RecoveredLog> {
    this.#writer = signer.writer;
    const session = await this.#locked();
    const { source } = this;
    await this.#register(session, signer);
    // After a failure, decisions from before the base may still be open: this process knows them.
    const base =
      options.base === undefined
        ? await this.#base(session, signer)
        : { ...options.base, open: [...this.#state.open.values()] };
    const { recovered } = await recoverLog(source, signer, { ...options, base }).catch((error: unknown) => {
      // The base stored in the segment's row turned out to be invalid, so recover from the first record.
      if (options.base !== undefined || !(error instanceof AuditDamaged)) throw error;
      return recoverLog(source, signer, options);
    });
    if (options.base !== undefined && recovered.epoch > this.#state.epoch) {
      const why = `another writer has written as ${signer.writer} meanwhile`;
      throw new AuditDamaged(source.place, 0, recovered.seq, why);
    }
    const open = new Map(recovered.orphans.map((record) => [record.request_id, record]));
    this.#state = { epoch: recovered.epoch, open };
    return { ...recovered, cut: null };
  }

  segments(recovered: RecoveredLog): SegmentStore {
    return new TableSegments(this.#connected(), this.#writer, this.#options, recovered, this.#state);
  }

  async notes(): Promise<NoteStore> {
    return tableNotes(this.#connected(), this.#writer);
  }

  rotated(): void {
    // No index to build: the row of each segment contains the log state before it.
  }

  async retain(note: Buffer, { base }: RetirementPlan): Promise<void> {
    await this.#connected().query(
      `INSERT INTO osl_audit.checkpoint (writer, size, kind, segment, note) VALUES ($1, $2, 'retained', $3, $4)`,
      [this.#writer, base.seq, base.segment + 1, note.toString().slice(0, -1)],
    );
  }

  async release(): Promise<void> {
    // The gateway has no DELETE privilege; `osl_audit.prune()` drops expired partitions.
  }

  async close(): Promise<void> {
    await this.#session?.end();
    this.#session = null;
  }

  #connected(): TableSession {
    if (this.#session === null) throw new Error('the table of the audit log is not connected');
    return this.#session;
  }

  /** Returns the connection that holds the writer's advisory lock, opening it if necessary. @throws AuditLocked */
  async #locked(): Promise<TableSession> {
    if (this.#session?.open) return this.#session;
    this.#session?.cut();
    const session = await connectTable(this.#options.url, this.#options.deadlineMs);
    const [row] = await session.query('SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken', [
      `osl_audit writer ${this.#writer}`,
    ]);
    if (row?.['taken'] !== true) {
      await session.end();
      throw new AuditLocked(`the audit log of writer ${this.#writer} is in use by another gateway`);
    }
    this.#session = session;
    return session;
  }

  async #register(session: TableSession, { writer, verifierKey }: Signer): Promise<void> {
    await session.query('SELECT osl_audit.make_partitions()');
    await session.query(
      'INSERT INTO osl_audit.writer (writer, vkey) VALUES ($1, $2) ON CONFLICT DO NOTHING',
      [writer, verifierKey],
    );
    const [row] = await session.query('SELECT vkey FROM osl_audit.writer WHERE writer = $1', [writer]);
    if (row?.['vkey'] !== verifierKey) {
      throw new AuditDamaged(
        `osl_audit, writer ${writer}`,
        0,
        0,
        'the table has another key for this writer',
      );
    }
  }

  /** Returns the log state in the row of the newest segment before which a checkpoint covers all records. */
  async #base(session: TableSession, signer: Signer): Promise<RecoverBase> {
    const [row] = await session.query(
      `SELECT segment, first_seq, chain, frontier, unanswered,
              (SELECT epoch FROM osl_audit.segment p WHERE p.writer = s.writer AND p.segment = s.segment - 1) AS before
         FROM osl_audit.segment s
        WHERE writer = $1 AND segment > 1
          AND first_seq <= (SELECT max(size) FROM osl_audit.checkpoint c WHERE c.writer = s.writer)
          AND segment > coalesce((SELECT max(c.segment) FROM osl_audit.checkpoint c WHERE c.writer = s.writer AND c.kind = 'retained'), 0)
        ORDER BY segment DESC LIMIT 1`,
      [signer.writer],
    );
    const base = row === undefined ? null : baseIn(row);
    return base ?? beginningOf(this.source, signer.verifier);
  }
}

/** Mutable state shared by the store and its segments. */
interface LogState {
  /** Newest epoch started by this process. */
  epoch: number;
  /** Allowed decisions that have no outcome yet. */
  readonly open: Map<string, AuditRecord>;
}

/** Returns the log state before a segment, from its row; null if the row contradicts itself. */
function baseIn(row: ResultRow): RecoverBase | null {
  const roots = splitHashes(bytes(row['frontier'])).map((root) => root.toString('latin1'));
  const seq = Number(row['first_seq']);
  try {
    const frontier = Frontier.of(seq, roots);
    const [segment, epoch] = [Number(row['segment']) - 1, Number(row['before'] ?? 0)];
    const open: unknown = row['unanswered'];
    // A gateway wrote `open`, and it is used only to add missing outcomes, so it is not validated.
    return {
      base: { segment, epoch, seq, chain: bytes(row['chain']), frontier },
      open: open as AuditRecord[],
    };
  } catch {
    return null;
  }
}

/** Inserts each group commit in a single statement. */
class TableSegments implements SegmentStore {
  readonly #session: TableSession;
  readonly #writer: string;
  readonly #options: TableOptions;
  readonly #state: LogState;
  #number: number;
  #used = 0;
  #seq: number;
  #chain: Buffer;
  /** Day of the segment's partition, from the database's clock; `#today` uses the local clock. */
  #day = '';
  #today = '';
  #fingerprints: Fingerprints | null = null;

  constructor(
    session: TableSession,
    writer: string,
    options: TableOptions,
    { segment, seq, chain }: RecoveredLog,
    state: LogState,
  ) {
    this.#session = session;
    this.#writer = writer;
    this.#options = options;
    this.#state = state;
    this.#number = segment;
    this.#seq = seq;
    this.#chain = chain;
  }

  get number(): number {
    return this.#number;
  }

  fits(length: number): boolean {
    return this.#used === 0 || (this.#used + length <= this.#options.segmentBytes && this.#today === today());
  }

  async begin({ epoch, firstSeq, chain }: Omit<SegmentHeader, 'segment'>, before: Frontier): Promise<void> {
    const segment = this.#number + 1;
    const key = randomBytes(32);
    await keepSegmentKey(this.#options.dir, segment, key);
    await this.#session.query('SELECT osl_audit.make_partitions()');
    const [row] = await this.#session.query(
      `INSERT INTO osl_audit.segment (writer, segment, epoch, first_seq, chain, frontier, unanswered)
       VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING day::text AS day`,
      [
        this.#writer,
        segment,
        epoch,
        firstSeq,
        chain,
        Buffer.concat(before.roots.map((root) => Buffer.from(root, 'latin1'))),
        JSON.stringify([...this.#state.open.values()]),
      ],
    );
    this.#day = text(row?.['day']);
    this.#today = today();
    this.#state.epoch = epoch;
    this.#number = segment;
    this.#used = 0;
    this.#seq = firstSeq;
    this.#chain = chain;
    this.#fingerprints = new Fingerprints(key);
  }

  /** Nothing to do: each group is committed before its `append` reports success. */
  async sync(): Promise<void> {}

  append(group: Buffer, length: number, done: (error: Error | null) => void): void {
    const frames = framesOf(group, length);
    const records = frames.map(({ record }) => record.toString());
    const chains = frames.map(({ chain }) => chain);
    const previous = [this.#chain, ...chains.slice(0, -1)];
    const values = [
      this.#day,
      this.#writer,
      this.#number,
      this.#seq,
      lines(records),
      hex(previous),
      hex(chains),
    ];
    this.#session.query(INSERT, values).then(
      () => {
        this.#used += length;
        this.#seq += frames.length;
        this.#chain = Buffer.from(chains.at(-1) ?? this.#chain);
        for (const record of records) this.#follow(record);
        done(null);
      },
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
    );
  }

  fingerprint(value: string): string {
    return `${this.#number}.${this.#keyed().of(value)}`;
  }

  fingerprintOf(bytes: Uint8Array, start: number, end: number): string {
    return `${this.#number}.${this.#keyed().ofBytes(bytes, start, end)}`;
  }

  async finish(): Promise<void> {
    // The store closes the connection.
  }

  async abandon(): Promise<void> {
    this.#session.cut();
  }

  #keyed(): Fingerprints {
    if (this.#fingerprints === null) throw new Error('no segment is open');
    return this.#fingerprints;
  }

  /** Tracks allowed decisions without an outcome, which the next segment's row stores. */
  #follow(record: string): void {
    const [, kind, request = ''] = KIND.exec(record) ?? [];
    if (kind === 'outcome') this.#state.open.delete(JSON.parse(`"${request}"`) as string); // still escaped as in JSON
    if (kind !== 'decision' || !record.includes('"decision":"allow"')) return;
    const decision = JSON.parse(record) as AuditRecord; // encoded by this process
    if (decision.decision === 'allow') this.#state.open.set(decision.request_id, decision);
  }
}

const KIND = /"kind":"(decision|outcome)".*?"request_id":"((?:[^"\\]|\\.)*)"/;

const INSERT = `
INSERT INTO osl_audit.record (day, writer, segment, seq, first_of_group, previous, chain, record)
SELECT $1::date, $2, $3::bigint, $4::bigint + n - 1, $4::bigint, decode(previous, 'hex'), decode(chain, 'hex'), record
  FROM unnest(string_to_array($5, E'\\n'), string_to_array($6, E'\\n'), string_to_array($7, E'\\n'))
       WITH ORDINALITY AS u (record, previous, chain, n)`;

/** Joins records by newlines, which canonical JSON never contains. */
function lines(records: readonly string[]): string {
  return records.join('\n');
}

function hex(hashes: readonly Buffer[]): string {
  return hashes.map((hash) => hash.toString('hex')).join('\n');
}

function today(): string {
  return new Date().toISOString().slice(0, 10);
}

function tableNotes(session: TableSession, writer: string): NoteStore {
  const insert = async (kind: 'lasting' | 'newest', note: Buffer, size: number): Promise<void> => {
    await session.query(
      'INSERT INTO osl_audit.checkpoint (writer, size, kind, note) VALUES ($1, $2, $3, $4)',
      [writer, size, kind, note.toString().slice(0, -1)],
    );
  };
  return {
    append: (note, size) => insert('lasting', note, size),
    replace: (note, size) => insert('newest', note, size),
    close: async () => undefined,
  };
}

/** Returns the queue of announced reads. Of several gateways, only the one with the advisory lock records them. */
function tableReadings(connected: () => TableSession): ReadingQueue {
  const recorders = new WeakSet<TableSession>();
  const records = async (session: TableSession): Promise<boolean> => {
    if (recorders.has(session)) return true;
    const [row] = await session.query(
      "SELECT pg_try_advisory_lock(hashtextextended('osl_audit readings', 0)) AS taken",
    );
    if (row?.['taken'] === true) recorders.add(session);
    return recorders.has(session);
  };
  return {
    waiting: async () => {
      const session = connected();
      if (!(await records(session))) return [];
      const rows = await session.query(WAITING);
      return rows.map(({ id, reading }) => ({ id: text(id), bytes: Buffer.from(text(reading)) }));
    },
    recorded: async (id) => {
      await connected().query(
        'INSERT INTO osl_audit.reading_recorded (id) VALUES ($1) ON CONFLICT DO NOTHING',
        [id],
      );
    },
  };
}

const WAITING = `
SELECT id::text AS id, reading FROM osl_audit.reading r
 WHERE NOT EXISTS (SELECT FROM osl_audit.reading_recorded d WHERE d.id = r.id) ORDER BY at LIMIT 100`;
