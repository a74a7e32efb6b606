import { existsSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { ready } from 'osl-compiler';
import {
  type ActivationBase,
  type ActivePolicy,
  type Authorship,
  activePolicy,
  type ControlQueries,
  controlVersions,
  publishedAfter,
  tenantsIn,
} from '../../src/base/control/index.js';
import { compiledPolicy, type PolicyJudgement } from '../../src/model/authoring/index.js';
import {
  EMPTY_OVERLAY,
  loadLayered,
  type Manifest,
  ManifestProblems,
  type Overlay,
} from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import { unseal } from '../../src/model/versions/versions.js';
import { diagnosticLines, policyDifferenceLines } from '../difference.js';
import { EXIT, Failure, failure, usage } from '../exit.js';
import { type ServerFlags, settingsOf } from '../flags.js';
import { note, print } from '../output.js';

export interface PolicyFlags extends Pick<ServerFlags, 'manifest'> {
  readonly tenant?: string;
  readonly json?: true;
}

export interface AuthorFlags extends PolicyFlags {
  readonly author?: string;
  readonly comment?: string;
}

export interface PolicyBaseline {
  readonly tenant: string;
  readonly model: Model;
  readonly active: ActivePolicy | null;
  readonly seen: ActivationBase;
}

/** Baseline for the manifest's tenant. @throws ManifestProblems, OverlayConflict, Failure, ControlFault */
export async function policyBaseline(control: ControlQueries, flags: PolicyFlags): Promise<PolicyBaseline> {
  await ready();
  const { manifestFile } = settingsOf(flags);
  const own = await loadLayered(manifestFile, EMPTY_OVERLAY);
  const { tenant } = own.manifest;
  if (tenant === null)
    throw usage(`${manifestFile} names no tenant: gateways that share a database need \`tenant:\` in it`);
  // Versions are read first, so that any change in between causes a conflict at activation.
  const seen = await controlVersions(control, tenant);
  const head = await publishedHead(control, tenant, seen.published);
  const { manifest } = head === null ? own : await loadLayered(manifestFile, head);
  const active = await activePolicy(control, tenant);
  return { tenant, model: modelOf(manifest, active), active, seen };
}

async function publishedHead(
  control: ControlQueries,
  tenant: string,
  number: number,
): Promise<Overlay | null> {
  if (number === 0) return null;
  const [head] = await publishedAfter(control, tenant, number - 1);
  const version = head === undefined ? null : unseal(head.id, head.bytes);
  if (version === null) throw failure(`published version ${number} is not what was published`);
  return version;
}

/** The model, without a policy if none is active or the active one does not compile with this manifest. */
function modelOf(manifest: Manifest, active: ActivePolicy | null): Model {
  if (active === null) return { manifest, snapshot: null };
  try {
    return { manifest, snapshot: compiledPolicy(active.text, `version ${active.version}`, manifest) };
  } catch (error) {
    if (error instanceof ManifestProblems) return { manifest, snapshot: null };
    throw error;
  }
}

/** Returns the tenant of the flag, else of the manifest, else the only tenant in the database. @throws Failure */
export async function tenantFor(control: ControlQueries, flags: PolicyFlags): Promise<string> {
  if (flags.tenant !== undefined) return flags.tenant;
  const { manifestFile } = settingsOf(flags);
  if (flags.manifest !== undefined || existsSync(manifestFile)) {
    const { manifest } = await loadLayered(manifestFile, EMPTY_OVERLAY);
    if (manifest.tenant !== null) return manifest.tenant;
  }
  const [only, ...more] = await tenantsIn(control);
  if (only !== undefined && more.length === 0) return only;
  throw usage(only === undefined ? 'there is no policy yet: osl policy push' : 'name one with --tenant');
}

export function printJudgement(judgement: PolicyJudgement, what: string): void {
  if (judgement.diff === null)
    throw new Failure(EXIT.usage, diagnosticLines(judgement.diagnostics, what).join('\n'));
  for (const line of policyDifferenceLines(judgement.diff)) print(line);
}

export function authorshipOf({ author, comment }: AuthorFlags): Authorship {
  return { author: author ?? `${userInfo().username}@${hostname()}`, comment: comment ?? null };
}

export function noteActive(version: number, activation: number): void {
  note(`version ${version} is active (activation ${activation}): gateways take it up as they hear of it`);
}
