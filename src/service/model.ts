import { join } from 'node:path';
import { compileSnapshotInSteps, PolicyProblems, type PolicySnapshot } from '../../policy/index.js';
import { inTurns } from '../base/in-turns.js';
import {
  CODES,
  type Diagnostic,
  EMPTY_OVERLAY,
  loadLayered,
  loadPolicyDocument,
  type Manifest,
  ManifestProblems,
  type PolicyFile,
  readManifestText,
} from '../model/manifest/index.js';
import { type FileLayer, type PublishedLayer, ServedModel } from '../model/served-model.js';
import { headIn } from '../model/versions/versions.js';
import { recordedTenant } from './directory-origin.js';
import type { Settings } from './settings.js';

/** Reads a text file. @throws the errors of `readManifestText` */
export type ReadFileText = (file: string) => Promise<string>;

/** The current policy cannot be determined, e.g. because the control database does not answer. */
export class PolicyUnknown extends ManifestProblems {
  readonly #reason: string;

  constructor(file: string, reason: string) {
    const start = { line: 1, column: 1 };
    const diagnostic = {
      code: CODES.unreadable,
      severity: 'error',
      file,
      range: { start, end: start },
      path: '',
    } as const;
    super([{ ...diagnostic, message: reason, hint: null }], '');
    this.message = reason;
    this.#reason = reason;
  }

  /** Formats the problem without a file name, since no file is at fault. */
  override format(): string {
    return `error: ${this.#reason}`;
  }
}

/** The policy is missing or invalid, but the manifest is valid. `cause` lists the problems. */
export class PolicyFault extends Error {
  override readonly cause: ManifestProblems;
  /** The valid manifest. It can be served without a policy; all requests are then refused. */
  readonly manifest: Manifest;
  readonly file: FileLayer;
  /** The tenant named by the policy if the policy can be parsed, or else by the manifest; null if neither names one. */
  readonly tenant: string | null;
  readonly unknown: boolean;

  constructor(cause: ManifestProblems, parts: Pick<PolicyFault, 'manifest' | 'file' | 'tenant'>) {
    super(cause.message);
    this.name = 'PolicyFault';
    this.unknown = cause instanceof PolicyUnknown;
    this.cause = cause;
    this.manifest = parts.manifest;
    this.file = parts.file;
    this.tenant = parts.tenant;
  }
}

/**
 * Loads the manifest, the policy and published objects, and compiles them together.
 *
 * @throws ManifestProblems for the manifest; PolicyFault; OverlayConflict
 */
export async function loadModel(
  manifestFile: string,
  policyFile: string,
  published: PublishedLayer | null,
  read: ReadFileText = readManifestText,
): Promise<ServedModel> {
  const { manifest, base, baseVersion } = await loadLayered(manifestFile, published ?? EMPTY_OVERLAY, read);
  const file = Object.freeze({ document: base, version: baseVersion });
  const policy = await readPolicy(policyFile, read);
  const toPolicyFault = (problems: ManifestProblems): PolicyFault => {
    const tenant = policy instanceof ManifestProblems ? manifest.tenant : policy.document.tenant;
    return new PolicyFault(problems, { manifest, file, tenant });
  };
  if (policy instanceof ManifestProblems) throw toPolicyFault(policy);
  const snapshot = await compilePolicy(policy, manifest);
  if (snapshot instanceof ManifestProblems) throw toPolicyFault(snapshot);
  return new ServedModel({ manifest, snapshot, tenant: policy.document.tenant, file, published });
}

async function readPolicy(file: string, read: ReadFileText): Promise<PolicyFile | ManifestProblems> {
  try {
    return await loadPolicyDocument(file, read);
  } catch (error) {
    if (error instanceof ManifestProblems) return error;
    throw error;
  }
}

async function compilePolicy(
  policy: PolicyFile,
  { catalog, tenant }: Manifest,
): Promise<PolicySnapshot | ManifestProblems> {
  try {
    return await inTurns(compileSnapshotInSteps(policy.document, catalog, tenant));
  } catch (error) {
    if (!(error instanceof PolicyProblems)) throw error;
    return problems(policy.diagnostics(error.problems), policy.text);
  }
}

function problems(diagnostics: readonly Diagnostic[], text: string): ManifestProblems {
  return new ManifestProblems(diagnostics, text);
}

/** The model loaded at startup. `policyFault` is the reason why it has no policy; null if it has one. */
export interface StartupModel {
  readonly model: ServedModel;
  readonly policyFault: PolicyFault | null;
}

/**
 * Loads the model for startup. If the policy is missing or invalid, the model has no policy; this requires that the
 * tenant is known, which is needed to verify tokens.
 *
 * @param previous result of an earlier call, returned if it has a policy and no other version has been published since
 * @throws PolicyFault if the tenant is unknown, and the errors of `loadServed`
 */
export async function loadStartupModel(
  settings: Settings,
  previous: StartupModel | null = null,
  read?: ReadFileText,
): Promise<StartupModel> {
  const published = await headIn(publishedDir(settings));
  if (previous?.policyFault === null && previous.model.published?.id === published?.id) return previous;
  try {
    const model = await loadModel(settings.manifestFile, settings.policyFile, published, read);
    return { model, policyFault: null };
  } catch (error) {
    if (!(error instanceof PolicyFault)) throw error;
    const tenant = recordedTenant(settings.dataDir) ?? error.tenant;
    if (tenant === null) throw error;
    const { manifest, file } = error;
    const model = new ServedModel({ manifest, snapshot: null, tenant, file, published });
    return { model, policyFault: error };
  }
}

/** The directory of published versions and drafts. */
export function publishedDir({ dataDir }: Pick<Settings, 'dataDir'>): string {
  return join(dataDir, 'published');
}

/** Loads the model to serve, with published objects. @throws the errors of `loadModel` */
export async function loadServed(settings: Settings): Promise<ServedModel> {
  const published = await headIn(publishedDir(settings));
  return loadModel(settings.manifestFile, settings.policyFile, published);
}
