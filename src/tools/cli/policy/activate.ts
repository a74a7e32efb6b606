import { activatePolicy, policyText } from '../../../control/index.js';
import { judgePolicy } from '../../../publishing/authoring/index.js';
import type { AuthorFlags } from '../commands/policy/flags.js';
import { withControl } from '../control/with-control.js';
import { usage } from '../exit.js';
import { note, printJson } from '../output.js';
import { authorshipOf, groundOf, noteActive, told } from './ground.js';

export function runActivate(version: number, flags: AuthorFlags): Promise<void> {
  return withControl(async ({ database }) => {
    const { tenant, model, active, seen } = await groundOf(database, flags);
    const text = await policyText(database, tenant, version);
    if (text === null) throw usage(`there is no version ${version}: osl policy history lists them`);
    const judgement = judgePolicy(text, `version ${version}`, model);
    if (!flags.json || !judgement.ok) told(judgement, `version ${version}`);
    if (active?.version === version) {
      if (flags.json) printJson({ version, activation: active.activation, diff: judgement.diff });
      else note(`version ${version} is active already`);
      return;
    }
    const asked = { version, action: 'activate', ...authorshipOf(flags) } as const;
    const activation = await activatePolicy(database, tenant, asked, seen);
    if (flags.json) printJson({ version, activation, diff: judgement.diff });
    else noteActive(version, activation);
  });
}
