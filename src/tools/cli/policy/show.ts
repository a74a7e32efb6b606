import { activePolicy, policyText } from '../../../control/index.js';
import type { PolicyFlags } from '../commands/policy/flags.js';
import { withControl } from '../control/with-control.js';
import { EXIT, Failure } from '../exit.js';
import { tenantFor } from './ground.js';

export function runShow(version: number | null, flags: PolicyFlags): Promise<void> {
  return withControl(async ({ database }) => {
    const tenant = await tenantFor(database, flags);
    const text =
      version === null
        ? ((await activePolicy(database, tenant))?.text ?? null)
        : await policyText(database, tenant, version);
    if (text === null)
      throw new Failure(
        EXIT.failed,
        version === null ? 'error: no policy is active' : `error: there is no version ${version}`,
      );
    process.stdout.write(text);
  });
}
