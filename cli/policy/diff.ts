import { ready } from 'osl-compiler';
import { policyText } from '../../src/base/control/index.js';
import { judgePolicy } from '../../src/model/authoring/index.js';
import { readManifestText } from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import { databasePlace } from '../../src/service/settings/control.js';
import { readSetting } from '../../src/service/settings/table.js';
import { EXIT, usage } from '../exit.js';
import { type ServerFlags, settingsOfModel } from '../flags.js';
import { print, printJson } from '../output.js';
import { type PolicyFlags, policyBaseline, told } from './ground.js';
import { pastLines } from './past-questions.js';
import { withControl } from './shared.js';

export interface PolicyDiffFlags extends PolicyFlags, Pick<ServerFlags, 'policy' | 'dataDir'> {
  /** Also reports past queries since then; a time as for `osl audit search`. */
  readonly since?: string;
  readonly dir?: string;
}

export async function runPolicyDiff(proposed: string, flags: PolicyDiffFlags): Promise<void> {
  const { text, model } = await comparedWith(proposed, flags);
  const judgement = judgePolicy(text, proposed, model);
  const { since } = flags;
  const questions =
    since === undefined || !judgement.ok
      ? null
      : await (await import('./past-questions.js')).pastQuestions(text, proposed, model, { ...flags, since });
  if (flags.json) {
    printJson(questions === null ? judgement : { ...judgement, questions });
    if (!judgement.ok) process.exitCode = EXIT.usage;
    return;
  }
  told(judgement, proposed);
  if (questions !== null) for (const line of pastLines(questions)) print(line);
}

/**
 * The proposed policy, and the model to compare it with: from the control database, if there is one and no policy file
 * is named.
 */
async function comparedWith(
  proposed: string,
  flags: PolicyDiffFlags,
): Promise<{ readonly text: string; readonly model: Model }> {
  const isNumber = /^\d{1,9}$/.test(proposed);
  const place = databasePlace(readSetting, 'OSL_CONTROL_URL');
  if (place === null || flags.policy !== undefined) {
    if (isNumber) throw usage(`version ${proposed}: set OSL_CONTROL_URL, the database where versions are`);
    await ready();
    const { manifestFile, policyFile } = settingsOfModel(flags);
    const { loadModel } = await import('../../src/service/model.js');
    return { text: await readManifestText(proposed), model: await loadModel(manifestFile, policyFile, null) };
  }
  return withControl(async ({ database }) => {
    const { tenant, model } = await policyBaseline(database, flags);
    const text = isNumber
      ? await policyText(database, tenant, Number(proposed))
      : await readManifestText(proposed);
    if (text === null) throw usage(`there is no version ${proposed}: osl policy history lists them`);
    return { text, model };
  });
}
