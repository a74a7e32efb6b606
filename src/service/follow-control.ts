import { stat } from 'node:fs/promises';
import { ControlFault, listenForChanges } from '../base/control/index.js';
import type { ServiceLog } from '../base/log.js';
import { codeOf, messageOf } from '../base/thrown.js';
import type { PublicationStore } from '../model/versions/versions.js';
import type { Control } from './control.js';
import type { TenantKeys } from './keys.js';
import { PolicyFault } from './model.js';
import type { ProcessFiles } from './process-files.js';
import type { PreparedChange } from './reload/reload.js';
import type { Settings } from './settings.js';

/** Reactions to changes in the control database. */
interface Follower {
  /** Applies the current state. Rejects if the state could not be read; the call is then repeated. */
  change(): Promise<void>;
  /** Applies revocations, which are already in the data directory. Rejects like `change`. */
  revoked(): Promise<void>;
  /** Called when the database has not answered for longer than configured. */
  silent(why: string): Promise<void>;
  /** Called when `control.clock.wrong` has changed. */
  clock(): void;
}

interface ControlFollower {
  close(): Promise<void>;
}

/** Polling interval in ms, in case a notification was missed. */
const LOOK_MS = 1_000;
const SILENCE_CHECK_MS = 250;

/**
 * Follows the control database: polls on each notification and once a second, one poll at a time, and reports if the
 * database falls silent.
 */
function followControl(control: Control, follower: Follower, log: ServiceLog): ControlFollower {
  let taken = control.seen;
  let silent = !control.heard;
  let clockWrong = control.clock.wrong;
  /** Kinds of failures logged since the last success. Initial silence counts as logged: that was done at startup. */
  const told = new Set(silent ? [ControlFault.name] : []);
  let looking: Promise<void> | null = null;
  let again = false;
  let closed = false;

  const look = async (): Promise<void> => {
    try {
      const seen = await control.look();
      if (control.clock.wrong !== clockWrong) {
        clockWrong = control.clock.wrong;
        follower.clock();
      }
      if (told.size > 0) log.warn('the control database answers again');
      told.clear();
      if (seen.revoked !== taken.revoked) {
        await follower.revoked();
        taken = { ...taken, revoked: seen.revoked };
      }
      if (!silent && seen.activation === taken.activation && seen.published === taken.published) return;
      const before = silent;
      // No poll runs during a change: if it takes so long that the silence is noticed, the next poll applies the state
      // again.
      silent = false;
      await follower.change().catch((error: unknown) => {
        silent ||= before;
        throw error;
      });
      taken = seen;
    } catch (error) {
      const kind = error instanceof Error ? error.name : 'unknown';
      if (!told.has(kind) && !closed)
        log.error('what is to serve could not be read from the control database', {
          cause: messageOf(error),
        });
      told.add(kind);
    }
  };
  const wake = (): void => {
    if (closed) return;
    if (looking !== null) {
      again = true;
      return;
    }
    looking = look().finally(() => {
      looking = null;
      if (!again) return;
      again = false;
      wake();
    });
  };
  const heed = (): void => {
    if (silent || !control.silent) return;
    silent = true;
    const why = control.silence;
    follower.silent(why).catch((error: unknown) => log.error(why, { cause: messageOf(error) }));
  };
  const listening = listenForChanges(control.settings.place, {
    heard: wake,
    lost: (fault: ControlFault) => {
      if (!closed)
        log.warn('changes are looked for once a second, and not heard of', { cause: fault.message });
    },
  });
  const looks = setInterval(wake, LOOK_MS).unref();
  const silences = setInterval(heed, SILENCE_CHECK_MS).unref();
  return Object.freeze({
    close: async () => {
      closed = true;
      clearInterval(looks);
      clearInterval(silences);
      await listening.close();
      await looking;
    },
  });
}

interface PolicyFollower extends Follower {
  file(): Promise<unknown>;
}

/** Follows the control database, if any, and the policy file if it is watched. Returns a function that stops it. */
export function followPolicy(
  { policyFile, watchesPolicy }: Settings,
  control: Control | null,
  follower: PolicyFollower,
  log: ServiceLog,
): () => Promise<void> {
  const unwatch =
    watchesPolicy && control?.settings.policySource !== 'control'
      ? watchFile(policyFile, () => {
          follower
            .file()
            .catch((error: unknown) =>
              log.error('the policy file was not taken up', { error: messageOf(error) }),
            );
        })
      : () => undefined;
  const following = control === null ? null : followControl(control, follower, log);
  return async () => {
    unwatch();
    await following?.close();
  };
}

/** Joins the other gateways: now or, if the database does not answer, with a later poll. */
export async function joined(control: Control | null, keys: TenantKeys, log: ServiceLog): Promise<void> {
  try {
    await control?.join(keys);
  } catch (error) {
    if (!(error instanceof ControlFault)) throw error;
    log.error('what other gateways have published is not known yet', { cause: error.message });
  }
}

/** Starts following the control database and the policy file. Returns a function that stops it. */
export function beginFollowing(
  { control }: ProcessFiles,
  settings: Settings,
  publishing: PublicationStore,
  log: ServiceLog,
  process: {
    policy(same: boolean): Promise<PreparedChange>;
    lose(why: string): Promise<void>;
    changed(): Promise<void>;
    revoked(): Promise<void>;
  },
): () => Promise<void> {
  const unfollow = followPolicy(
    settings,
    control,
    {
      file: () => publishing.exclusively(() => takeUp(() => process.policy(false))),
      change: async () => {
        if (control !== null) await follow(control, publishing, process.policy);
        await process.changed();
      },
      revoked: process.revoked,
      silent: process.lose,
      clock: () => undefined,
    },
    log,
  );
  return async () => {
    await unfollow();
    await control?.close();
  };
}

/** Applies the state of the control database in this process. Rejects if it cannot be read. */
async function follow(
  control: Control,
  publishing: PublicationStore,
  prepare: (same: boolean) => Promise<PreparedChange>,
): Promise<void> {
  await publishing.exclusively(async () => {
    await control.pull();
    await takeUp(() => prepare(control.settings.policySource === 'file'));
  });
}

/** Prepares and applies a change. Ignores an invalid, missing or unknown policy: it is already recorded and logged. */
async function takeUp(prepare: () => Promise<PreparedChange>): Promise<void> {
  try {
    await (await prepare()).take();
  } catch (error) {
    if (!(error instanceof PolicyFault)) throw error;
  }
}

const WATCH_MS = 250;

/**
 * Calls `changed` when a file has changed and its state was the same in two successive polls, so that a file written in
 * pieces is complete. Detects replaced files and changed links too. A file written after this process started counts as
 * changed. Returns a function that stops the polling.
 */
export function watchFile(file: string, changed: () => void): () => void {
  let known: string | null = null;
  let pending: string | null = null;
  let looking = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    const { mark: now, since } = await stateOf(file);
    looking = false;
    known ??= since >= performance.timeOrigin ? '' : now;
    if (now === known) pending = null;
    else if (now === pending) {
      known = now;
      pending = null;
      changed();
    } else pending = now;
  };
  void look();
  const timer = setInterval(() => void look(), WATCH_MS).unref();
  return () => clearInterval(timer);
}

/** Returns a text that identifies the state of a file, and the time of its last change in ms since the epoch. */
async function stateOf(file: string): Promise<{ readonly mark: string; readonly since: number }> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return { mark: [dev, ino, size, mtimeNs, ctimeNs].join(' '), since: Number(ctimeNs / 1_000_000n) };
  } catch (error) {
    return { mark: `none: ${codeOf(error)}`, since: Number.POSITIVE_INFINITY };
  }
}
