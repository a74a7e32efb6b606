import { existsSync } from 'node:fs';
import {
  type Activation,
  activatePolicy,
  activations,
  type ControlQueries,
  policyText,
  type Seen,
  standing,
} from '../../../control/index.js';
import { judgePolicy, type PolicyJudgement } from '../../../publishing/authoring/index.js';
import type { AuthorFlags } from '../commands/policy/flags.js';
import { withControl } from '../control/with-control.js';
import { usage } from '../exit.js';
import { settingsOf } from '../flags.js';
import { note, printJson } from '../output.js';
import { authorshipOf, groundOf, noteActive, tenantFor, told } from './ground.js';

export function runRollback(to: number | null, flags: AuthorFlags): Promise<void> {
  return withControl(async ({ database }) => {
    const tenant = await tenantFor(database, flags);
    const history = await activations(database, tenant);
    const version = to ?? before(history);
    const text = await policyText(database, tenant, version);
    if (text === null) throw usage(`there is no version ${version}: osl policy history lists them`);
    if (!history.some((activation) => activation.version === version))
      throw usage(`version ${version} never served: osl policy activate ${version}`);
    const { seen, judgement } = await judged(database, tenant, version, text, flags);
    if (judgement !== null && (!flags.json || !judgement.ok)) told(judgement, `version ${version}`);
    const asked = { version, action: 'rollback', ...authorshipOf(flags) } as const;
    const activation = await activatePolicy(database, tenant, asked, seen);
    if (flags.json) printJson({ version, activation, diff: judgement?.diff ?? null });
    else noteActive(version, activation);
  });
}

/** The version that served before the one that serves. @throws Failure */
function before(history: readonly Activation[]): number {
  const [newest] = history;
  const found = history.find(({ version }) => version !== newest?.version);
  if (found === undefined) throw usage('no other version has ever served: there is nothing to go back to');
  return found.version;
}

/** Judged where the manifest is at hand. */
async function judged(
  control: ControlQueries,
  tenant: string,
  version: number,
  text: string,
  flags: AuthorFlags,
): Promise<{ readonly seen: Seen; readonly judgement: PolicyJudgement | null }> {
  const { manifestFile } = settingsOf(flags);
  if (flags.manifest === undefined && !existsSync(manifestFile)) {
    note(`there is no ${manifestFile}: each gateway checks the policy by itself`);
    return { seen: await standing(control, tenant), judgement: null };
  }
  const ground = await groundOf(control, flags);
  return { seen: ground.seen, judgement: judgePolicy(text, `version ${version}`, ground.model) };
}
