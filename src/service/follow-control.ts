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
interface ControlListener {
  /** Applies the current state. Rejects if the state could not be read; the call is then repeated. */
  onChange(): Promise<void>;
  /** Applies revocations, which are already in the data directory. Rejects like `onChange`. */
  onRevocations(): Promise<void>;
  /** Called when the database has not answered for longer than configured. */
  onSilence(reason: string): Promise<void>;
  /** Called when `control.clock.isWrong` has changed. */
  onClockChange(): void;
}

interface Closable {
  close(): Promise<void>;
}

/** Polling interval in ms, in case a notification was missed. */
const POLL_MS = 1_000;
const SILENCE_CHECK_MS = 250;

/**
 * Follows the control database: polls on each notification and once a second, one poll at a time, and reports if the
 * database falls silent.
 */
function followControl(control: Control, listener: ControlListener, log: ServiceLog): Closable {
  let appliedState = control.lastState;
  let isSilent = !control.hasAnswered;
  let clockWrong = control.clock.isWrong;
  /** Kinds of failures logged since the last success. Initial silence counts as logged: that was done at startup. */
  const loggedFailures = new Set(isSilent ? [ControlFault.name] : []);
  let currentPoll: Promise<void> | null = null;
  let pollAgain = false;
  let isClosed = false;

  const poll = async (): Promise<void> => {
    try {
      const state = await control.poll();
      if (control.clock.isWrong !== clockWrong) {
        clockWrong = control.clock.isWrong;
        listener.onClockChange();
      }
      if (loggedFailures.size > 0) log.warn('the control database answers again');
      loggedFailures.clear();
      if (state.revoked !== appliedState.revoked) {
        await listener.onRevocations();
        appliedState = { ...appliedState, revoked: state.revoked };
      }
      if (
        !isSilent &&
        state.activation === appliedState.activation &&
        state.published === appliedState.published
      )
        return;
      const wasSilent = isSilent;
      // No poll runs while a change is applied. If that takes so long that the database counts as silent, the next poll
      // applies the state again.
      isSilent = false;
      await listener.onChange().catch((error: unknown) => {
        isSilent ||= wasSilent;
        throw error;
      });
      appliedState = state;
    } catch (error) {
      const kind = error instanceof Error ? error.name : 'unknown';
      if (!loggedFailures.has(kind) && !isClosed)
        log.error('what is to serve could not be read from the control database', {
          cause: messageOf(error),
        });
      loggedFailures.add(kind);
    }
  };
  const requestPoll = (): void => {
    if (isClosed) return;
    if (currentPoll !== null) {
      pollAgain = true;
      return;
    }
    currentPoll = poll().finally(() => {
      currentPoll = null;
      if (!pollAgain) return;
      pollAgain = false;
      requestPoll();
    });
  };
  const checkSilence = (): void => {
    if (isSilent || !control.isSilent) return;
    isSilent = true;
    const reason = control.silenceText;
    listener.onSilence(reason).catch((error: unknown) => log.error(reason, { cause: messageOf(error) }));
  };
  const subscription = listenForChanges(control.settings.place, {
    heard: requestPoll,
    lost: (fault: ControlFault) => {
      if (!isClosed)
        log.warn('changes are looked for once a second, and not heard of', { cause: fault.message });
    },
  });
  const pollTimer = setInterval(requestPoll, POLL_MS).unref();
  const silenceTimer = setInterval(checkSilence, SILENCE_CHECK_MS).unref();
  return Object.freeze({
    close: async () => {
      isClosed = true;
      clearInterval(pollTimer);
      clearInterval(silenceTimer);
      await subscription.close();
      await currentPoll;
    },
  });
}

interface PolicyListener extends ControlListener {
  onPolicyFile(): Promise<unknown>;
}

/** Follows the control database, if any, and the policy file if it is watched. Returns a function that stops it. */
export function followPolicy(
  { policyFile, watchesPolicy }: Settings,
  control: Control | null,
  listener: PolicyListener,
  log: ServiceLog,
): () => Promise<void> {
  const stopWatching =
    watchesPolicy && control?.settings.policySource !== 'control'
      ? watchFile(policyFile, () => {
          listener
            .onPolicyFile()
            .catch((error: unknown) =>
              log.error('the policy file was not taken up', { error: messageOf(error) }),
            );
        })
      : () => undefined;
  const controlFollower = control === null ? null : followControl(control, listener, log);
  return async () => {
    stopWatching();
    await controlFollower?.close();
  };
}

/** Joins the other gateways: now or, if the database does not answer, with a later poll. */
export async function joinGateways(
  control: Control | null,
  keys: TenantKeys,
  log: ServiceLog,
): Promise<void> {
  try {
    await control?.join(keys);
  } catch (error) {
    if (!(error instanceof ControlFault)) throw error;
    log.error('what other gateways have published is not known yet', { cause: error.message });
  }
}

/** Starts following the control database and the policy file. Returns a function that stops it. */
export function startFollowing(
  { control }: ProcessFiles,
  settings: Settings,
  publishing: PublicationStore,
  log: ServiceLog,
  process: {
    policy(same: boolean): Promise<PreparedChange>;
    lose(reason: string): Promise<void>;
    changed(): Promise<void>;
    refreshRevocations(): Promise<void>;
  },
): () => Promise<void> {
  const stopFollowing = followPolicy(
    settings,
    control,
    {
      onPolicyFile: () => publishing.exclusively(() => applyChange(() => process.policy(false))),
      onChange: async () => {
        if (control !== null) await applyControlState(control, publishing, process.policy);
        await process.changed();
      },
      onRevocations: process.refreshRevocations,
      onSilence: process.lose,
      onClockChange: () => undefined,
    },
    log,
  );
  return async () => {
    await stopFollowing();
    await control?.close();
  };
}

/** Applies the state of the control database in this process. Rejects if it cannot be read. */
async function applyControlState(
  control: Control,
  publishing: PublicationStore,
  prepare: (same: boolean) => Promise<PreparedChange>,
): Promise<void> {
  await publishing.exclusively(async () => {
    await control.pull();
    await applyChange(() => prepare(control.settings.policySource === 'file'));
  });
}

/** Prepares and applies a change. Ignores an invalid, missing or unknown policy: it is already recorded and logged. */
async function applyChange(prepare: () => Promise<PreparedChange>): Promise<void> {
  try {
    await (await prepare()).apply();
  } catch (error) {
    if (!(error instanceof PolicyFault)) throw error;
  }
}

const FILE_POLL_MS = 250;

/**
 * Calls `onChanged` when a file has changed and its state was the same in two successive polls, so that a file written in
 * pieces is complete. Detects replaced files and changed links too. A file written after this process started counts as
 * changed. Returns a function that stops the polling.
 */
export function watchFile(file: string, onChanged: () => void): () => void {
  let lastState: string | null = null;
  let pendingState: string | null = null;
  let isPolling = false;
  const poll = async (): Promise<void> => {
    if (isPolling) return;
    isPolling = true;
    const { mark: current, since } = await fileState(file);
    isPolling = false;
    lastState ??= since >= performance.timeOrigin ? '' : current;
    if (current === lastState) pendingState = null;
    else if (current === pendingState) {
      lastState = current;
      pendingState = null;
      onChanged();
    } else pendingState = current;
  };
  void poll();
  const timer = setInterval(() => void poll(), FILE_POLL_MS).unref();
  return () => clearInterval(timer);
}

/** Returns a text that identifies the state of a file, and the time of its last change in ms since the epoch. */
async function fileState(file: string): Promise<{ readonly mark: string; readonly since: number }> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return { mark: [dev, ino, size, mtimeNs, ctimeNs].join(' '), since: Number(ctimeNs / 1_000_000n) };
  } catch (error) {
    return { mark: `none: ${codeOf(error)}`, since: Number.POSITIVE_INFINITY };
  }
}
