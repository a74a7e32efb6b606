import { type Catalog, compile, compileMetrics, emit, type GovernedPlan, ready } from 'osl-compiler';
import type { EffectiveAccess } from '../../policy/index.js';
import type { QuestionBody } from '../../src/ask/request/request-target.js';
import { headIn } from '../../src/model/versions/versions.js';
import { accessOfChain } from '../../src/service/lineage/description.js';
import { loadModel, publishedDir } from '../../src/service/model.js';
import { compiled } from '../compiled.js';
import { usage } from '../exit.js';
import { besideManifest, type ServerFlags, settingsOfModel } from '../flags.js';
import { print, printJson, visible } from '../output.js';
import { notHolding, type ProvenReceipt, provenReceipt, questionOf, saltOf } from './proven-record.js';

export interface ReplayFlags extends ServerFlags {
  readonly key: string;
  readonly question: string;
  readonly salt?: string;
}

/**
 * Compiles the query of a receipt under the local model and policy, which must have the versions in the receipt, to
 * show that they give the same objects and masks.
 *
 * @throws Failure if the receipt is not valid, the versions differ, or the objects or masks differ
 */
export async function runReplay(file: string, flags: ReplayFlags): Promise<void> {
  const proven = provenReceipt(file, flags.key);
  const { body } = questionOf(flags.question, proven, saltOf(file, flags.salt));
  const { record } = proven;
  const settings = settingsOfModel(besideManifest(flags));
  await ready();
  const published = flags.dataDir === undefined ? null : await headIn(publishedDir(settings));
  const { manifest, snapshot } = await loadModel(settings.manifestFile, settings.policyFile, published);
  const here = { manifest: manifest.version, policy: snapshot?.version ?? null };
  if (
    snapshot === null ||
    here.manifest !== record.versions?.manifest ||
    here.policy !== record.versions.policy
  )
    throw usage(
      `the answer was given under manifest ${record.versions?.manifest} and policy ${record.versions?.policy}, and these are ${here.manifest} and ${here.policy}`,
    );
  const access = accessOfChain(record.chain, snapshot, manifest);
  const plan = compiled(() => planOf(body, manifest.catalog, access));
  requireSame(proven, plan);
  const { sql } = emit(plan);
  const masked = [...masksOf(plan)];
  if (flags.json) {
    printJson({ objects: plan.objects, masked, versions: here, sql });
    return;
  }
  print(visible(`the same objects: ${plan.objects.join(', ')}`));
  print(visible(`the same masks: ${masked.length === 0 ? 'none' : masked.join(', ')}`));
  print(
    visible(
      `for ${record.chain.join(', ')} with all roles that the policy gives, this is sent to the database:`,
    ),
  );
  print(visible(sql));
}

function planOf(body: QuestionBody, catalog: Catalog, access: EffectiveAccess): GovernedPlan {
  switch (body.kind) {
    case 'metrics':
      return compileMetrics(body.request, catalog, access);
    case 'sql':
    case 'osql':
    case 'wire':
      return compile(body.text, catalog, access, { world: body.kind === 'sql' ? 'physical' : 'semantic' });
  }
}

/** Checks that the plan reads and masks exactly the objects and columns in the receipt. */
function requireSame({ record, receipt }: ProvenReceipt, plan: GovernedPlan): void {
  const objects = plan.objects.slice(0, record.objects.length);
  if (
    objects.join() !== record.objects.join() ||
    plan.objects.length !== objects.length + record.objects_omitted
  )
    throw notHolding(
      `this policy reads ${plan.objects.join(', ')}, and the answer read ${record.objects.join(', ')}`,
    );
  const masks = masksOf(plan);
  const missing = [...masks].filter((column) => !receipt.masked.includes(column));
  if (missing.length > receipt.masked_omitted)
    throw notHolding(`this policy masks ${missing.join(', ')}, and the answer does not name it`);
  const more = receipt.masked.filter((column) => !masks.has(column));
  // Fields of passages are redacted at run time, so the plan's masks do not include them.
  if (more.length > 0 && plan.runtime.length === 0)
    throw notHolding(`this policy does not mask ${more.join(', ')}, and the answer names it`);
}

/** Columns whose values a plan masks, in its output or in its conditions. */
function masksOf({ redactedColumns, maskedColumns }: GovernedPlan): ReadonlySet<string> {
  return new Set([...redactedColumns, ...maskedColumns]);
}
