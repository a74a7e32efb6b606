import { readFileSync, statSync } from 'node:fs';
import { isObject } from '../src/base/is-object.js';
import { POLICY_SCHEMA } from '../src/model/manifest/schema/policy.js';
import { simpleYaml } from '../src/model/manifest/simple-yaml.js';

/** Parts of a policy needed to mint tokens. */
export interface PolicySubjects {
  readonly tenant: string;
  /** In the order of the file. */
  readonly subjects: ReadonlyMap<string, PolicySubject>;
  readonly roles: ReadonlySet<string>;
}

export interface PolicySubject {
  readonly ceiling: readonly string[];
  readonly admin: readonly string[];
}

/**
 * Subjects of a policy file. A simple file is read by a fast parser and not validated, which the server does; anything
 * else goes through the slow policy loader.
 *
 * @throws ManifestProblems
 */
export async function policySubjects(file: string): Promise<PolicySubjects> {
  const plain = plainSubjects(file);
  if (plain !== null) return plain;
  const { loadPolicyDocument } = await import('../src/model/manifest/index.js');
  const { document } = await loadPolicyDocument(file);
  return {
    tenant: document.tenant,
    subjects: new Map(
      Object.entries(document.subjects).map(([name, { ceiling, admin = [] }]) => [name, { ceiling, admin }]),
    ),
    roles: new Set(Object.keys(document.roles)),
  };
}

/** UTF-16 units; larger files go to the loader. */
const LONGEST = 1_048_576;

function plainSubjects(file: string): PolicySubjects | null {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? LONGEST;
  const document = size < LONGEST ? simpleYaml(textOf(file)) : undefined;
  if (!hasOnly(document, Object.keys(POLICY_SCHEMA.properties))) return null;
  const { version, tenant, subjects, roles, masks } = document;
  if (version !== 1 || typeof tenant !== 'string' || !isObject(roles) || !isObject(masks)) return null;
  if (!isObject(subjects)) return null;
  const read = Object.entries(subjects).map(([name, value]) => [name, subjectOf(value)] as const);
  const known = read.flatMap(([name, subject]) => (subject === null ? [] : [[name, subject] as const]));
  if (known.length < read.length) return null;
  return { tenant, subjects: new Map(known), roles: new Set(Object.keys(roles)) };
}

/** Empty if the file cannot be read. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function subjectOf(value: unknown): PolicySubject | null {
  if (!hasOnly(value, ['ceiling', 'admin', 'attributes'])) return null;
  const { ceiling, admin = [] } = value;
  return isTexts(ceiling) && isTexts(admin) ? { ceiling, admin } : null;
}

type Mapping = Readonly<Record<string, unknown>>;

function hasOnly(value: unknown, names: readonly string[]): value is Mapping {
  return isObject(value) && Object.keys(value).every((name) => names.includes(name));
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
