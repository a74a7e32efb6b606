import type { PolicySnapshot } from '../../policy/index.js';
import {
  type Diagnostic,
  type Manifest,
  ManifestProblems,
  parseSource,
  readManifestText,
} from '../../src/model/manifest/index.js';
import { loadModel, PolicyFault } from '../../src/service/model.js';
import { type ManifestNames, namesOf } from './names.js';

export interface Project {
  readonly manifestFile: string;
  /** Null if there is none: then only the manifest is checked. */
  readonly policyFile: string | null;
}

export type OpenTexts = ReadonlyMap<string, string>;

export interface SoundModel {
  readonly manifest: Manifest;
  /** Null if the policy is missing or invalid. */
  readonly snapshot: PolicySnapshot | null;
}

export interface CheckResult {
  readonly diagnostics: readonly Diagnostic[];
  /** Null if the manifest is invalid. */
  readonly sound: SoundModel | null;
  readonly names: ManifestNames | null;
}

/** Checks a project as `osl validate` does, with unsaved texts instead of files. */
export async function check(project: Project, open: OpenTexts): Promise<CheckResult> {
  const read = async (file: string): Promise<string> => open.get(file) ?? readManifestText(file);
  const { diagnostics, sound } = await judged(project, read);
  const [manifest, policy] = await Promise.all([
    valueIn(project.manifestFile, read),
    project.policyFile === null ? null : valueIn(project.policyFile, read),
  ]);
  return {
    diagnostics,
    sound,
    names: manifest === undefined || policy === undefined ? null : namesOf(manifest, policy),
  };
}

async function judged(
  { manifestFile, policyFile }: Project,
  read: (file: string) => Promise<string>,
): Promise<Pick<CheckResult, 'diagnostics' | 'sound'>> {
  try {
    const { manifest, snapshot } = await loadModel(manifestFile, policyFile ?? '', null, read);
    return { diagnostics: [], sound: { manifest, snapshot } };
  } catch (error) {
    if (error instanceof ManifestProblems) return { diagnostics: error.diagnostics, sound: null };
    if (!(error instanceof PolicyFault)) throw error;
    const sound = { manifest: error.manifest, snapshot: null };
    return { diagnostics: policyFile === null ? [] : error.cause.diagnostics, sound };
  }
}

/** Parsed YAML; undefined if it cannot be parsed. */
async function valueIn(file: string, read: (file: string) => Promise<string>): Promise<unknown> {
  try {
    return parseSource(await read(file), file).value;
  } catch (error) {
    if (error instanceof ManifestProblems) return undefined;
    throw error;
  }
}
