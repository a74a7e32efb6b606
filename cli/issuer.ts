import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { mintToken } from '../policy/tokens/mint.js';
import { DEFAULT_ISSUER, MAX_ROLES, MAX_TOKEN_BYTES } from '../policy/tokens/token-fault.js';
import { isObject } from '../src/base/is-object.js';
import { POLICY_SCHEMA } from '../src/model/manifest/schema/policy.js';
import { simpleYaml } from '../src/model/manifest/simple-yaml.js';
import { tenantKeys } from '../src/service/keys.js';
import type { Settings } from '../src/service/settings.js';
import { EXIT, Failure, usage } from './exit.js';
import { readServerFile } from './server-file.js';

interface TokenRequest {
  readonly subject?: string;
  /** Delegation chain from root to leaf; default: just the subject. */
  readonly chain?: readonly string[];
  readonly aclRoles?: readonly string[];
  readonly roles?: readonly string[];
  /** True to claim the admin roles that the policy gives to the subject, if `roles` is missing. */
  readonly admin?: boolean;
  /** Lifetime in seconds; default 300. */
  readonly ttl?: number;
}

export interface IssuedToken {
  readonly token: string;
  readonly subject: string;
  readonly chain: readonly string[];
  readonly aclRoles: readonly string[];
  readonly unknownRoles: readonly string[];
}

/** Mints tokens with the key in a data directory; anyone who can read the key can do so. */
export interface DevelopmentIssuer {
  readonly subjects: readonly string[];
  /** True if the server also accepts tokens from other issuers. */
  readonly hasOtherIssuers: boolean;
  /** @throws Failure if the policy does not declare a subject of the chain, or the token would be too large */
  mint(request: TokenRequest): Promise<IssuedToken>;
}

/**
 * Opens an issuer that signs tokens with the key in the data directory for the subjects in the policy's YAML.
 *
 * @param policyFile overrides the policy of the running server
 * @throws Failure, StartProblem, ManifestProblems
 */
export async function openIssuer(settings: Settings, policyFile: string | null): Promise<DevelopmentIssuer> {
  const { dataDir } = settings;
  const keysDir = settings.keysDir ?? join(dataDir, 'keys');
  if (!exists(keysDir)) {
    throw usage(
      `there are no keys in ${keysDir}: start a server once, name its --data-dir, or set OSL_KEYS_DIR as it does`,
    );
  }
  const server = readServerFile(dataDir);
  if (server?.localTokens === false) {
    throw usage(
      'the server takes tokens of its issuers alone: log in with `osl login`, give one with --token (or OSL_TOKEN), or start it with OSL_LOCAL_TOKENS=on',
    );
  }
  const audience = server?.audience ?? settings.audiences[0] ?? '';
  const { signing } = tenantKeys(dataDir, settings.keysDir);
  const { tenant, subjects, roles } = await policySubjects(policyFile ?? policyOf(settings));
  const mint = async (request: TokenRequest): Promise<IssuedToken> => {
    const chain = chainOf(request);
    for (const member of chain) if (!subjects.has(member)) throw await unknownSubject(member, subjects);
    const leaf: PolicySubject | undefined = subjects.get(chain.at(-1) ?? '');
    const aclRoles = request.aclRoles ?? leaf?.ceiling ?? [];
    if (aclRoles.length > MAX_ROLES)
      throw usage(
        `a token claims at most ${MAX_ROLES} data roles, and these are ${aclRoles.length}: name fewer, with --acl-roles`,
      );
    const own = request.admin === true ? leaf?.admin : [];
    const claims = {
      tenant,
      chain,
      aclRoles,
      roles: request.roles ?? own ?? [],
      issuer: server?.issuer ?? settings.issuers[0] ?? DEFAULT_ISSUER,
      ...(audience === '' ? {} : { audience }),
    };
    const lifetime = request.ttl === undefined ? {} : { lifetimeSeconds: request.ttl };
    const token = await mintToken({ ...claims, ...lifetime }, { algorithm: 'HS256', secret: signing });
    if (token.length > MAX_TOKEN_BYTES)
      throw usage(
        `the token would have ${token.length} bytes, and a server takes ${MAX_TOKEN_BYTES}: claim fewer roles, with --acl-roles`,
      );
    const unknownRoles = aclRoles.filter((role) => !roles.has(role));
    return Object.freeze({ token, subject: chain.at(-1) ?? '', chain, aclRoles, unknownRoles });
  };
  return Object.freeze({
    subjects: [...subjects.keys()],
    hasOtherIssuers: server?.hasIssuers === true,
    mint,
  });
}

function policyOf(settings: Settings): string {
  const record = readServerFile(settings.dataDir);
  if (record !== null) return record.policyFile;
  if (exists(settings.policyFile)) return settings.policyFile;
  throw new Failure(
    EXIT.unreachable,
    `error: no server runs in ${settings.dataDir}, and there is no policy file ${settings.policyFile}: start a server, or name --data-dir or --policy`,
  );
}

function chainOf({ subject, chain }: TokenRequest): readonly string[] {
  const members = chain ?? (subject === undefined ? [] : [subject]);
  const leaf = members.at(-1);
  if (leaf === undefined) throw usage('name the subject of the token: --subject user:analyst');
  if (subject !== undefined && leaf !== subject) {
    throw usage(`the chain ends in \`${leaf}\`, not in the subject \`${subject}\`: root first, subject last`);
  }
  return members;
}

async function unknownSubject(subject: string, known: ReadonlyMap<string, PolicySubject>): Promise<Failure> {
  const { nearest } = await import('osl-compiler');
  const near = nearest(subject, known.keys());
  const first = [...known.keys()].slice(0, 10).join(', ');
  const hint = near === null ? `the policy knows ${first}` : `perhaps you meant \`${near}\``;
  return usage(`subject \`${subject}\` is not in the policy: ${hint}`);
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

interface PolicySubjects {
  readonly tenant: string;
  readonly subjects: ReadonlyMap<string, PolicySubject>;
  readonly roles: ReadonlySet<string>;
}

interface PolicySubject {
  readonly ceiling: readonly string[];
  readonly admin: readonly string[];
}

/**
 * Subjects of a policy file. A simple file is read by a fast parser and left for the server to validate; anything else
 * goes through the slow policy loader.
 *
 * @throws ManifestProblems
 */
async function policySubjects(file: string): Promise<PolicySubjects> {
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

type RawMapping = Readonly<Record<string, unknown>>;

function hasOnly(value: unknown, names: readonly string[]): value is RawMapping {
  return isObject(value) && Object.keys(value).every((name) => names.includes(name));
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
