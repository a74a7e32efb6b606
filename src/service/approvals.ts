import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { queryError } from 'osl-compiler';
import { Approvals } from '../../policy/index.js';
import {
  type ApprovalDecision,
  type ApprovalEntry,
  type ApprovalRegistry,
  type ApprovalRequest,
  approvalOf,
  type OpenRequests,
} from '../ask/request/approval-requests.js';
import {
  addApproval,
  approvalsAt,
  type ControlDatabase,
  ControlFault,
  decideStoredApproval,
  revokeStoredApproval,
  type StoredApproval,
} from '../base/control/index.js';
import { bytesOf, createWhole, namesIn } from '../base/files.js';
import type { ServiceLog } from '../base/log.js';
import { Serial } from '../base/serial.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';

/** Interval in ms at which the store is polled for changes by other processes and gateways. */
const LOOK_MS = 1_000;
/** Time in ms without an answer from the store, after which no approval counts. */
const SILENCE_MS = 5_000;

/** The approvals of a data directory or, for several gateways, of the control database. */
export class SharedApprovals implements ApprovalRegistry {
  readonly approvals = new Approvals();
  readonly #store: ApprovalRegistry;
  readonly #isUsed: () => boolean;
  readonly #log: ServiceLog;
  readonly #looks = new Serial();
  #timer: NodeJS.Timeout | null = null;
  #heardAt = performance.now();
  #waits = false;
  #troubled = false;

  /** @param isUsed true if a grant of the policy needs an approval; otherwise, the store is not polled */
  constructor(store: ApprovalRegistry, isUsed: () => boolean, log: ServiceLog) {
    this.#store = store;
    this.#isUsed = isUsed;
    this.#log = log;
  }

  /** Reads the store, then polls it once a second. After 5 s without an answer from the store, no approval counts. */
  async start(): Promise<this> {
    await this.#lookAgain();
    this.#timer = setInterval(() => void this.#lookAgain(), LOOK_MS).unref();
    return this;
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  all(): Promise<readonly ApprovalEntry[]> {
    return available(() => this.#take());
  }

  add(request: ApprovalRequest, most: OpenRequests): Promise<number | null> {
    return available(() => this.#store.add(request, most));
  }

  decide(id: string, decision: ApprovalDecision): Promise<boolean> {
    return this.#changed(() => this.#store.decide(id, decision));
  }

  revoke(id: string, end: { readonly by: string; readonly at: number }): Promise<boolean> {
    return this.#changed(() => this.#store.revoke(id, end));
  }

  #changed(change: () => Promise<boolean>): Promise<boolean> {
    return available(async () => {
      const is = await change();
      await this.#take();
      return is;
    });
  }

  /** Reads the store. Reads are serialized, so that an older state never replaces a newer one. */
  #take(): Promise<readonly ApprovalEntry[]> {
    return this.#looks.run(async () => {
      const began = performance.now();
      const entries = await this.#store.all();
      this.approvals.replace(entries.flatMap((entry) => approvalOf(entry) ?? []));
      this.#heardAt = began;
      return entries;
    });
  }

  async #lookAgain(): Promise<void> {
    if (performance.now() - this.#heardAt > SILENCE_MS) this.approvals.replace([]);
    if (this.#waits || !this.#isUsed()) return;
    this.#waits = true;
    try {
      await this.#take();
      this.#troubled = false;
    } catch (error) {
      if (!this.#troubled) this.#log.error('approvals could not be read', { cause: messageOf(error) });
      this.#troubled = true;
    } finally {
      this.#waits = false;
    }
  }
}

/** @throws QueryError E5036 if the control database fails */
async function available<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ControlFault) throw queryError('approvalsUnavailable', {});
    throw error;
  }
}

/** Returns the limit on open requests that this request would exceed; null if it exceeds none or is stored already. */
function exceeded(
  entries: readonly ApprovalEntry[],
  { id, chain }: ApprovalRequest,
  { perChain, perTenant }: OpenRequests,
): number | null {
  if (entries.some(({ request }) => request.id === id)) return null;
  const open = entries.filter(({ decision }) => decision === null);
  const own = open.filter(({ request }) => JSON.stringify(request.chain) === JSON.stringify(chain));
  if (own.length >= perChain) return perChain;
  return open.length >= perTenant ? perTenant : null;
}

/** Approvals in the control database. */
export function controlApprovals(
  database: ControlDatabase,
  tenant: string,
  gateway: string,
): ApprovalRegistry {
  return Object.freeze({
    all: async () => (await approvalsAt(database, tenant, Date.now())).map(entryOf),
    add: (request: ApprovalRequest, most: OpenRequests) => {
      const { id, expiresAt: until } = request;
      const stored = { id, request: JSON.stringify(request), until, gateway };
      return addApproval(database, tenant, stored, (entries) =>
        exceeded(entries.map(entryOf), request, most),
      );
    },
    decide: (id: string, decision: ApprovalDecision) =>
      decideStoredApproval(database, tenant, id, JSON.stringify(decision), decision.endsAt),
    revoke: (id: string, end: { readonly by: string; readonly at: number }) =>
      revokeStoredApproval(database, tenant, id, JSON.stringify(end)),
  });
}

// casts: only this file writes these texts
function entryOf({ request, decision, revoked }: StoredApproval): ApprovalEntry {
  return {
    request: JSON.parse(request) as ApprovalRequest,
    decision: decision === null ? null : (JSON.parse(decision) as ApprovalDecision),
    revoked: revoked === null ? null : (JSON.parse(revoked) as ApprovalEntry['revoked']),
  };
}

/** File names: `<id>.request.json`, then `<id>.decision.json` and `<id>.revoked.json`. */
const NAME = /^([0-9a-f-]{36})\.(request|decision|revoked)\.json$/;
type ApprovalFileKind = 'request' | 'decision' | 'revoked';

/**
 * Stores approvals in files of `dir`, for all processes of a data directory. A file is created whole and never changed;
 * the first process to create it decides. Two requests added at once by different processes may exceed a limit by one.
 */
export function fileApprovals(dir: string): ApprovalRegistry {
  const file = (id: string, part: ApprovalFileKind): string => join(dir, `${id}.${part}.json`);
  const all = async (): Promise<readonly ApprovalEntry[]> => {
    const ids = (await namesIn(dir)).flatMap((name) => {
      const [, id = '', part] = NAME.exec(name) ?? [];
      return part === 'request' ? [id] : [];
    });
    const entries: ApprovalEntry[] = [];
    for (const id of ids) {
      const [revoked, decision, request] = [
        await read(file(id, 'revoked')),
        await read(file(id, 'decision')),
        await read(file(id, 'request')),
      ];
      if (request === null) continue; // removed meanwhile
      const entry = entryFrom({ request, decision, revoked }, id);
      if (endOf(entry) > Date.now()) entries.push(entry);
      // The request is removed first: without its decision, it would count as open again.
      else
        for (const part of ['request', 'decision', 'revoked'] as const)
          await rm(file(id, part), { force: true });
    }
    return entries.sort((a, b) => a.request.at - b.request.at);
  };
  const adding = new Serial();
  return Object.freeze({
    all,
    add: (request: ApprovalRequest, most: OpenRequests) =>
      adding.run(async () => {
        const limit = exceeded(await all(), request, most);
        if (limit !== null) return limit;
        await mkdir(dir, { recursive: true, mode: 0o700 });
        await createWhole(file(request.id, 'request'), JSON.stringify(request));
        return null;
      }),
    decide: async (id: string, decision: ApprovalDecision) =>
      (await has(all, id)) && createWhole(file(id, 'decision'), JSON.stringify(decision)),
    revoke: async (id: string, end: { readonly by: string; readonly at: number }) =>
      (await has(all, id)) && createWhole(file(id, 'revoked'), JSON.stringify(end)),
  });
}

async function has(all: () => Promise<readonly ApprovalEntry[]>, id: string): Promise<boolean> {
  return (await all()).some(({ request }) => request.id === id);
}

function endOf({ request, decision }: ApprovalEntry): number {
  return decision?.endsAt ?? request.expiresAt;
}

/** @throws StartProblem for a damaged file, so that nothing is approved */
function entryFrom(stored: StoredApproval, id: string): ApprovalEntry {
  try {
    return entryOf(stored);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new StartProblem(`approvals/${id} in the data directory is damaged: remove its files`);
  }
}

async function read(file: string): Promise<string | null> {
  return (await bytesOf(file))?.toString('utf8') ?? null;
}
