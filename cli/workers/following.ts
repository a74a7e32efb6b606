import type { ServiceLog } from '../../src/base/log.js';
import { readManifestText } from '../../src/model/manifest/index.js';
import type { Control } from '../../src/service/control.js';
import { followPolicy } from '../../src/service/follow-control.js';
import { PolicyUnknown } from '../../src/service/model.js';
import { activationOf } from '../../src/service/seat.js';
import type { Settings } from '../../src/service/settings.js';
import type { WorkerChanges } from './changes.js';
import type { Texts } from './messages.js';

/** What is to be served now: the files, and the policy of the control database where it stands there. */
export async function textsOf(
  { manifestFile, policyFile }: Settings,
  control: Control | null,
): Promise<Texts> {
  const manifest = await readManifestText(manifestFile).catch(() => null);
  return { manifest, ...(await policyNow(policyFile, control)) };
}

type PolicyText = Pick<Texts, 'policy' | 'fault' | 'activation' | 'heard'>;

async function policyNow(policyFile: string, control: Control | null): Promise<PolicyText> {
  const activation = activationOf(control);
  const heard = control?.heard ?? true;
  try {
    const policy = await (control === null ? readManifestText : control.read)(policyFile);
    return { policy, fault: null, activation, heard };
  } catch (error) {
    // What is wrong with a file the workers say, who read it again.
    const fault = error instanceof PolicyUnknown ? error.message : null;
    return { policy: null, fault, activation, heard };
  }
}

/** Follows the control database, or a policy file that is watched, for all workers. Gives what ends that. */
export function followFor(
  changes: WorkerChanges,
  settings: Settings,
  control: Control | null,
  log: ServiceLog,
): () => Promise<void> {
  const { policyFile } = settings;
  return followPolicy(
    settings,
    control,
    {
      file: () =>
        changes.policy(async (served) => ({ ...served, ...(await policyNow(policyFile, control)) })),
      change: async () => {
        await changes.policy(async (served) => {
          await control?.pull();
          // Where each gateway has a file of its own, only a signal or the watch reads it.
          return activationOf(control) === null && served.fault === null
            ? served
            : { ...served, ...(await policyNow(policyFile, control)) };
        });
      },
      revoked: () => changes.revoked(),
      silent: (why) => changes.losePolicy(why),
    },
    log,
  );
}
