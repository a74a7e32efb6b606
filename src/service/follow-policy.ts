import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import type { Control } from './control.js';
import { type Follower, followControl } from './follow-control.js';
import type { Settings } from './settings.js';
import { watchFile } from './watch-file.js';

/** What a server does about a policy that changes under it. */
export interface PolicyFollower extends Follower {
  /** Takes up the policy file, which is another. */
  file(): Promise<unknown>;
}

/**
 * Follows the control database, where there is one, and the policy file, where it is the policy's source and is watched.
 * Gives what ends that.
 */
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
