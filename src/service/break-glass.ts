import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { InternalError } from 'osl-compiler';
import type { Emergency, Identity } from '../../policy/index.js';
import type { BreakGlassRegistry, BreakGlassUse } from '../ask/request/break-glass.js';
import { createWhole, namesIn } from '../base/files.js';
import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';

const DAY_MS = 86_400_000;

/** One of the break-glass uses that a subject may have per 24 hours, as stored in a file of its own. */
interface BreakGlassSlot extends Emergency {
  /** A hash of the reason; the reason itself is in the audit log. */
  readonly reason: string;
}

/**
 * A break-glass registry in files of `dir`. Each of a subject's slots (one use per 24 hours) is a file, so that all
 * processes of a data directory count together, even after a restart. The process that creates the file gets the slot.
 *
 * @param url URL that receives alarms; null means that they are only logged
 */
export function openBreakGlass(dir: string, url: string | null, log: ServiceLog): BreakGlassRegistry {
  return Object.freeze({
    running: async (identity: Identity, reason: string, minutes: number) => {
      const now = Date.now();
      const reasonHash = digest([reason]);
      for (const file of (await slotsOf(dir, identity)).values()) {
        const { id, startedAt } = file.slot;
        const isRunning = now >= startedAt && now < startedAt + minutes * 60_000;
        if (file.slot.reason === reasonHash && isRunning) return { id, startedAt };
      }
      return null;
    },
    take: async (identity: Identity, reason: string, perDay: number) => {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      for (;;) {
        const slots = await slotsOf(dir, identity);
        const now = Date.now();
        const slot: BreakGlassSlot = { id: randomUUID(), startedAt: now, reason: digest([reason]) };
        // INVARIANT: setting the clock back does not free a slot.
        const taken = new Map([...slots].filter(([, file]) => now - file.slot.startedAt < DAY_MS));
        // After a lower limit more slots may be taken than it allows: all but `perDay - 1` of them must end first.
        const starts = [...taken.values()].map((file) => file.slot.startedAt).toSorted((a, b) => a - b);
        const blocking = starts[starts.length - perDay];
        if (blocking !== undefined) return Math.max(1, Math.ceil((blocking + DAY_MS - now) / 1_000));
        let freeNumber = 0;
        while (taken.has(freeNumber)) freeNumber++;
        const turn = (slots.get(freeNumber)?.turn ?? 0) + 1;
        // If another process has created the file first, try the next slot.
        if (await createWhole(slotPath(dir, identity, freeNumber, turn), JSON.stringify(slot)))
          return { id: slot.id, startedAt: slot.startedAt };
      }
    },
    alarm: (use: BreakGlassUse) => {
      const { id, subject, surface, requestId: request_id, endsAt } = use;
      const endsText = new Date(endsAt).toISOString();
      log.error('a subject broke the glass; the audit log has the reason', {
        id,
        subject,
        surface,
        request_id,
        ends: endsText,
      });
      if (url !== null) void send(url, use, log);
    },
  });
}

/** The current file of a slot: the file with the highest turn, which counts how often the slot has been used. */
interface SlotFile {
  readonly turn: number;
  readonly slot: BreakGlassSlot;
}

/** Returns the slots of a subject by number, and removes files of earlier turns. */
async function slotsOf(dir: string, identity: Identity): Promise<ReadonlyMap<number, SlotFile>> {
  const owner = ownerOf(identity);
  const turns = new Map<number, number>();
  for (const name of await namesIn(dir)) {
    const [, number, turn] = /^[0-9a-f]{64}\.(\d+)\.(\d+)$/.exec(name) ?? [];
    if (number === undefined || !name.startsWith(owner)) continue;
    const [slot, newestTurn] = [Number(number), turns.get(Number(number)) ?? 0];
    if (newestTurn > 0)
      await rm(slotPath(dir, identity, slot, Math.min(newestTurn, Number(turn))), { force: true });
    turns.set(slot, Math.max(newestTurn, Number(turn)));
  }
  const slots = new Map<number, SlotFile>();
  for (const [number, turn] of turns) {
    const slot = await readSlot(slotPath(dir, identity, number, turn));
    // The file has been replaced since the directory was read, so read all slots again.
    if (slot === null) return slotsOf(dir, identity);
    slots.set(number, { turn, slot });
  }
  return slots;
}

/** Reads a slot; null if the file does not exist. @throws Error if it is damaged, so that access is refused */
async function readSlot(file: string): Promise<BreakGlassSlot | null> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    requireAbsent(error);
    return null;
  }
  const { id, startedAt, reason } = JSON.parse(text) as Partial<BreakGlassSlot>; // cast: written by `take`
  if (id === undefined || startedAt === undefined || reason === undefined)
    throw new InternalError(`${file} is not as it was written`);
  return { id, startedAt, reason };
}

function requireAbsent(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}

function slotPath(dir: string, identity: Identity, slot: number, turn: number): string {
  return join(dir, `${ownerOf(identity)}.${slot}.${turn}`);
}

function ownerOf({ tenant, chain }: Identity): string {
  return digest([tenant, ...chain]);
}

function digest(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

const RETRY_DELAYS_MS = [0, 1_000, 5_000, 30_000];
const ALARM_TIMEOUT_MS = 5_000;

/** Posts the alarm, with the reason, to `url`. After a failure it is repeated, up to four attempts in all. */
async function send(url: string, use: BreakGlassUse, log: ServiceLog): Promise<void> {
  const { id, subject, reason, surface, requestId, startedAt, endsAt } = use;
  const body = JSON.stringify({
    type: 'osl.break_glass',
    id,
    subject,
    reason,
    surface,
    request_id: requestId,
    starts: new Date(startedAt).toISOString(),
    ends: new Date(endsAt).toISOString(),
  });
  let fault = '';
  for (const delayMs of RETRY_DELAYS_MS) {
    await new Promise<void>((resolve) => {
      setTimeout(resolve, delayMs).unref();
    });
    try {
      const headers = { 'content-type': 'application/json' };
      const signal = AbortSignal.timeout(ALARM_TIMEOUT_MS);
      const { ok, status } = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'error' });
      if (ok) return;
      fault = `status ${status}`;
    } catch (error) {
      fault = messageOf(error);
    }
  }
  log.error('an alarm was not delivered', { id, request_id: requestId, error: fault });
}
