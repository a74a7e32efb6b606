import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { queryError } from 'osl-compiler';
import {
  type Revocation,
  type RevocationKey,
  type RevocationResult,
  RevokedTokens,
} from '../../policy/index.js';
import { bytesOf, namesIn, removeWhole, renameWhole, syncNames, writeWhole } from '../base/files.js';
import type { ServiceLog } from '../base/log.js';
import { Serial } from '../base/serial.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';

/** Polling interval in ms, for changes whose message from another process was missed. */
const POLL_MS = 1_000;

/** File names in `revoked/`: `<id>.json`, or `<id>.unshared.json` until it is shared with other gateways. */
const NAME = /^([0-9a-f-]{36})(\.unshared)?\.json$/;
const UNSHARED = '.unshared';

/** Revocations stored in a data directory. */
export class RevocationFiles {
  readonly #dir: string;

  constructor(dataDir: string) {
    this.#dir = join(dataDir, 'revoked');
  }

  /** Writes a revocation durably. @param unshared true if other gateways do not have it yet */
  async write(revocation: Revocation, unshared: boolean): Promise<void> {
    const createdDir = await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    if (createdDir !== undefined) await syncNames(join(this.#dir, '..'));
    await writeWhole(this.#file(revocation.id, unshared), Buffer.from(JSON.stringify(revocation)));
  }

  /** Marks a revocation as known to the other gateways. The sender and the poller may call this at the same time. */
  async markShared({ id }: Revocation): Promise<void> {
    await renameWhole(this.#file(id, true), this.#file(id, false));
  }

  /** Reads the revocations whose ids are not in `known`. @throws StartProblem for a damaged file */
  async read(known: ReadonlySet<string> = new Set()): Promise<readonly Revocation[]> {
    return this.#read((id) => !known.has(id));
  }

  /** Reads the revocations that other gateways do not have yet. @throws the errors of `read` */
  async unshared(): Promise<readonly Revocation[]> {
    return this.#read((_, unshared) => unshared);
  }

  async remove(id: string): Promise<void> {
    for (const unshared of [false, true]) await removeWhole(this.#file(id, unshared));
  }

  async #read(filter: (id: string, unshared: boolean) => boolean): Promise<readonly Revocation[]> {
    const revocations: Revocation[] = [];
    for (const name of await namesIn(this.#dir)) {
      const [, id, unshared] = NAME.exec(name) ?? [];
      if (id === undefined || !filter(id, unshared !== undefined)) continue;
      const bytes = await bytesOf(join(this.#dir, name));
      if (bytes !== null) revocations.push(parseRevocation(bytes, name)); // null: removed or shared meanwhile
    }
    return revocations;
  }

  #file(id: string, unshared: boolean): string {
    return join(this.#dir, `${id}${unshared ? UNSHARED : ''}.json`);
  }
}

/** @throws StartProblem */
function parseRevocation(bytes: Buffer, name: string): Revocation {
  const { id, kind, name: revokedName, at, until } = parseMembers(bytes);
  if (
    typeof id === 'string' &&
    (kind === 'token' || kind === 'subject') &&
    typeof revokedName === 'string' &&
    typeof at === 'number' &&
    typeof until === 'number'
  )
    return { id, kind, name: revokedName, at, until };
  throw new StartProblem(
    `revoked/${name} in the data directory is not as it was written: restore it, or remove it and revoke again what it says`,
  );
}

function parseMembers(bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

/** Dependencies for handling revocations. */
export interface RevocationParts {
  readonly files: RevocationFiles;
  readonly log: ServiceLog;
  /** True for the one process of a directory that removes expired revocations. */
  readonly removesExpired: boolean;
  /** Resolves once every other process has read the revocations or is gone. */
  readonly notifyProcesses: () => Promise<void>;
  /** Longest lifetime in ms, including clock skew, that the current settings allow for a token. */
  readonly lifetimeMs: () => number;
  /** Shares a revocation with all gateways; false on failure. Null without a control database. */
  readonly share: ((revocation: Revocation) => Promise<boolean>) | null;
}

const MAX_REVOCATIONS = 10_000;

/** The revocations in force in this process, kept current from the data directory. */
export class Revocations {
  readonly revoked = new RevokedTokens();
  readonly #parts: RevocationParts;
  #timer: NodeJS.Timeout | null = null;
  readonly #reads = new Serial();
  #isFailing = false;
  #isPolling = false;

  private constructor(parts: RevocationParts) {
    this.#parts = parts;
  }

  /**
   * Reads the revocations, then polls for new ones. @throws Error if they cannot be read; nothing may be served then
   */
  static async open(parts: RevocationParts): Promise<Revocations> {
    const revocations = new Revocations(parts);
    await revocations.#readNew();
    revocations.#timer = setInterval(() => void revocations.#poll(), POLL_MS).unref();
    return revocations;
  }

  /**
   * Revokes tokens in all processes of all gateways. When this resolves, the revocation is durable and in force in this
   * server; `shared` is false if sharing it with the other gateways failed, and null without a control database.
   *
   * @throws QueryError E0511 if too many revocations are in force
   */
  async revoke(key: RevocationKey): Promise<RevocationResult> {
    const { files, share, notifyProcesses, lifetimeMs } = this.#parts;
    if (this.revoked.all().length >= MAX_REVOCATIONS)
      throw queryError('tooLarge', { what: 'the number of revocations in force', limit: MAX_REVOCATIONS });
    const at = Date.now();
    const revocation: Revocation = { ...key, id: randomUUID(), at, until: at + lifetimeMs() };
    await files.write(revocation, share !== null);
    this.revoked.add([revocation]);
    await notifyProcesses();
    if (share === null) return { revocation, shared: null };
    const shared = await share(revocation);
    if (shared) await files.markShared(revocation);
    return { revocation, shared };
  }

  /** Reads revocations written by other processes. @throws Error if they cannot be read */
  refresh(): Promise<void> {
    return this.#reads.run(() => this.#readNew());
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      await this.refresh();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing)
        this.#parts.log.error('what was revoked could not be read', { cause: messageOf(error) });
      this.#isFailing = true;
    } finally {
      this.#isPolling = false;
    }
  }

  async #readNew(): Promise<void> {
    const { files, removesExpired } = this.#parts;
    const now = Date.now();
    const known = this.revoked.all();
    const newRevocations = await files.read(new Set(known.map(({ id }) => id)));
    this.revoked.add(newRevocations.filter(({ until }) => until > now));
    this.revoked.prune(now);
    if (!removesExpired) return;
    for (const { id, until } of [...known, ...newRevocations]) if (until <= now) await files.remove(id);
  }
}
