import { type Access, type Catalog, InternalError } from 'osl-compiler';
import {
  compileSnapshot,
  effectiveAccess,
  type IdentityClaims,
  type PolicyDocument,
  type PolicySnapshot,
  sessionRights,
} from '../../../policy/index.js';
import {
  type RowSecurityDesign,
  rowSecurityOf,
  rowSecurityScript,
  signedRights,
} from '../../../src/model/row-security/index.js';
import { asPolicy, catalogOf, LABELS, type World } from './world.js';

const KEY = Buffer.alloc(32, 7);
const TENANT = 'oracle';
const ROLE = 'osl_reader';

/** A world under a real policy, and what stands behind the gateway for it. */
export interface SecondLine {
  readonly catalog: Catalog;
  readonly access: Access;
  readonly design: RowSecurityDesign;
  /** SQL of one transaction, for the owner. */
  readonly script: string;
  /** What the gateway sends with a statement of the world's caller. */
  readonly rights: string;
}

/**
 * The policy of `world`: each grant in a role of its own, as a token may claim them, and one role that shows everything,
 * which nobody's ceiling has.
 */
export function secondLine(world: World, schema: string): SecondLine {
  const catalog = catalogOf(world, schema);
  const document = policyOf(world);
  const snapshot = compileSnapshot(document, catalog);
  const identity = callerOf(world, document, snapshot);
  const design = rowSecurityOf({ name: 'main', tables: new Map() }, ROLE, catalog, snapshot);
  return {
    catalog,
    access: effectiveAccess(identity, snapshot, catalog),
    design,
    script: rowSecurityScript(design, KEY).join(';\n'),
    rights: signedRights(sessionRights(identity, snapshot, [], null), design.version, KEY, Date.now()),
  };
}

function policyOf(world: World): PolicyDocument {
  const grants = world.tables.flatMap((table) =>
    table.grants.map((grant, i) => ({
      role: `r${i}`,
      grant: {
        on: table.name,
        columns: [...grant.columns],
        unmask: [...grant.unmask].filter((label) => table.columns.some((c) => c.sensitivity === label)),
        ...(grant.filter === null ? {} : { rows: asPolicy(grant.filter) }),
      },
    })),
  );
  const names = [...new Set(grants.map((g) => g.role))];
  const deny = world.tables
    .filter((t) => t.denied.size > 0)
    .map((t) => ({ on: t.name, columns: [...t.denied] }));
  const roles = names.map((name, i) => [
    name,
    {
      grants: grants.filter((g) => g.role === name && g.grant.columns.length > 0).map((g) => g.grant),
      ...(i === 0 ? { deny } : {}),
    },
  ]);
  const everything = world.tables.map((t) => ({ on: t.name, columns: t.columns.map((c) => c.name) }));
  const [first] = world.tables;
  return {
    version: 1,
    tenant: TENANT,
    subjects: Object.fromEntries(
      world.subjects.map((subject, i) => [
        `s${i}`,
        {
          ceiling: names,
          attributes: Object.fromEntries(
            [...subject].map(([name, v]) => [name, v === 'any' ? ({ any: true } as const) : v]),
          ),
        },
      ]),
    ),
    roles: Object.fromEntries([...roles, ['everything', { grants: everything }]]),
    masks: Object.fromEntries(
      LABELS.filter((label) => world.tables.some((t) => t.columns.some((c) => c.sensitivity === label))).map(
        (label) => [label, first?.masks.get(label) ?? 'redact'],
      ),
    ),
  };
}

/** Claims all roles; that of everything is above its ceiling. */
function callerOf(world: World, document: PolicyDocument, snapshot: PolicySnapshot): IdentityClaims {
  const chain = world.subjects.map((_, i) => `s${i}`);
  const subject = chain.at(-1);
  if (subject === undefined) throw new InternalError('a world without a caller');
  return {
    tenant: snapshot.tenant,
    subject,
    chain,
    roles: [],
    aclRoles: Object.keys(document.roles),
    tokenId: 'oracle',
    issuedAt: 0,
    expiresAt: Number.MAX_SAFE_INTEGER,
  };
}
