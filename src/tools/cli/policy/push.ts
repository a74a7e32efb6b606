import { activatePolicy, pushPolicy } from '../../../control/index.js';
import { readManifestText } from '../../../model/manifest/index.js';
import { judgePolicy } from '../../../publishing/authoring/index.js';
import type { PushFlags } from '../commands/policy/flags.js';
import { withControl } from '../control/with-control.js';
import { note, printJson } from '../output.js';
import { authorshipOf, groundOf, noteActive, told } from './ground.js';

export function runPush(file: string, flags: PushFlags): Promise<void> {
  return withControl(async ({ database }) => {
    const text = await readManifestText(file);
    const { tenant, model, seen } = await groundOf(database, flags);
    const judgement = judgePolicy(text, file, model);
    if (!flags.json || !judgement.ok) told(judgement, file);
    const by = authorshipOf(flags);
    const { number, added } = await pushPolicy(database, tenant, text, by);
    if (!flags.json) note(added ? `kept as version ${number}` : `version ${number} has this text already`);
    const activation = flags.activate
      ? await activatePolicy(database, tenant, { version: number, action: 'activate', ...by }, seen)
      : null;
    if (flags.json) printJson({ version: number, added, activation, diff: judgement.diff });
    else if (activation !== null) noteActive(number, activation);
  });
}
