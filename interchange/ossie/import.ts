import type { PolicyDocument } from '../../policy/document.js';
import { type Manifest, policyShape } from '../../src/model/manifest/index.js';
import { assemble, draftDocument, type ImportResult } from '../assemble.js';
import { PolicyDraft, policyFault } from '../draft.js';
import type { ImportOptions } from '../options.js';
import { settle } from '../settle.js';
import { report, type SourceFile } from '../source.js';
import { settleTypes } from '../types.js';
import { type Core, readCore } from './core.js';
import { type EmbeddedModel, findUnchanged, isWithin, merge, readEmbeddedModel } from './merge.js';

/**
 * Imports Apache Ossie (Open Semantic Interchange) files. A file exported by this gateway gives the original
 * manifest, with the changes made since.
 *
 * @throws ManifestProblems if a file has the wrong shape
 */
export function importOssie(files: readonly SourceFile[], options: ImportOptions): ImportResult {
  const core = readCore(files, options);
  const carried = core.models.map((m) => ({ model: m, carried: readEmbeddedModel(m) }));
  for (const file of files) file.check();
  const [only, more] = carried;
  if (only?.carried != null && more === undefined)
    return fromExtension(core, only.model, only.carried, files, options);
  for (const { carried: c } of carried)
    if (c !== null)
      report(
        c.place,
        'lost',
        'of several models only the cores are read, and no extension of this gateway',
        'high',
      );
  const tenant = options.tenant ?? core.tenant;
  return assemble(core.draft, new PolicyDraft(), files, { ...options, tenant });
}

function fromExtension(
  { draft }: Core,
  model: Core['models'][number],
  carried: EmbeddedModel,
  files: readonly SourceFile[],
  options: ImportOptions,
): ImportResult {
  const same = findUnchanged(model, carried);
  settleTypes(draft, options);
  const { document: core, origins } = draftDocument(draft, options);
  const whole = { document: carried.manifest.document, origins: { get: () => carried.place } };
  const both = same.all ? whole : merge(core, origins, carried, same);
  const named = options.tenant === null ? both.document : { ...both.document, tenant: options.tenant };
  const { document, manifest } = settle(named, both.origins);
  const policy = policyOf(carried, manifest, options);
  const losses = files.flatMap((f) => f.account.losses());
  // Losses that the extension makes up for are not reported.
  return { document, manifest, policy, losses: losses.filter((l) => !isCovered(l, same)) };
}

function isCovered(loss: ImportResult['losses'][number], same: ReturnType<typeof findUnchanged>): boolean {
  return isWithin(loss.path, same) && !loss.path.includes('/custom_extensions/');
}

/** The embedded policy, if requested and valid; otherwise one that grants nothing. */
function policyOf(carried: EmbeddedModel, manifest: Manifest, options: ImportOptions): PolicyDocument {
  const none = new PolicyDraft().policy(manifest.tenant ?? 'main', manifest.catalog);
  if (carried.policy === null) {
    if (options.withPolicy)
      report(carried.place, 'lost', 'the file carries no policy; nobody is granted anything', 'high');
    return none;
  }
  if (!options.withPolicy) {
    const reason = 'the file carries a policy, which was left out; --with-policy takes it';
    report(carried.place, 'lost', reason, 'high');
    return none;
  }
  const fault = faultOf(carried.policy, manifest);
  if (fault === null) {
    const { service_accounts: _accounts, exchange: _rules, ...policy } = carried.policy as PolicyDocument; // checked by the schema
    return options.tenant === null ? policy : { ...policy, tenant: options.tenant };
  }
  report(carried.place, 'lost', `the policy that the file carries does not fit: ${fault}`, 'high');
  return none;
}

function faultOf(policy: unknown, manifest: Manifest): string | null {
  const [problem] = policyShape(policy);
  if (problem !== undefined) return problem.message;
  return policyFault(policy as PolicyDocument, manifest.catalog); // checked by the schema
}
