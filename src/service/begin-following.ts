import type { ServiceLog } from '../base/log.js';
import { ControlFault } from '../control/index.js';
import type { Publishing } from '../publishing/store/index.js';
import type { Control } from './control.js';
import { followPolicy } from './follow-policy.js';
import type { TenantKeys } from './keys.js';
import { PolicyFault } from './model.js';
import type { Prepared } from './reload.js';
import type { Seat } from './seat.js';
import type { Settings } from './settings.js';

/** What others have published, and what only this directory has. A database that does not answer is followed later. */
export async function joined(control: Control | null, keys: TenantKeys, log: ServiceLog): Promise<void> {
  try {
    await control?.join(keys);
  } catch (error) {
    if (!(error instanceof ControlFault)) throw error;
    log.error('what other gateways have published is not known yet', { cause: error.message });
  }
}

/** Follows the control database, or a policy file that is watched. Gives what ends that. */
export function beginFollowing(
  { control }: Seat,
  settings: Settings,
  publishing: Publishing,
  log: ServiceLog,
  process: {
    policy(same: boolean): Promise<Prepared>;
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
    },
    log,
  );
  return async () => {
    await unfollow();
    await control?.close();
  };
}

/** Takes up what the control database says, in this process alone. Rejects where that cannot be read. */
async function follow(
  control: Control,
  publishing: Publishing,
  prepare: (same: boolean) => Promise<Prepared>,
): Promise<void> {
  await publishing.exclusively(async () => {
    await control.pull();
    await takeUp(() => prepare(control.settings.policySource === 'file'));
  });
}

/** Takes up what `prepare` reads. A policy that is missing, invalid or unknown is on record and in the log by then. */
async function takeUp(prepare: () => Promise<Prepared>): Promise<void> {
  try {
    await (await prepare()).take();
  } catch (error) {
    if (!(error instanceof PolicyFault)) throw error;
  }
}
