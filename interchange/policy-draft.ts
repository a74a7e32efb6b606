import type { Catalog } from 'osl-compiler';
import type { GrantDocument, PolicyDocument } from '../policy/document.js';
import { compileSnapshot, PolicyProblems } from '../policy/index.js';
import { report, type SourcePlace } from './source.js';

interface GrantDraft {
  readonly role: string;
  readonly grant: GrantDocument;
  readonly place: SourcePlace;
}

/** Roles in the making. Nobody has them: a policy draft has no subjects. */
export class PolicyDraft {
  readonly #grants: GrantDraft[] = [];

  add(role: string, grant: GrantDocument, place: SourcePlace): void {
    this.#grants.push({ role, grant, place });
  }

  /** The policy over a catalog. A grant that does not load there is left out, and reported. */
  policy(tenant: string, catalog: Catalog): PolicyDocument {
    const whole = documentOf(this.#grants, tenant);
    if (policyFault(whole, catalog) === null) return whole;
    const fits = this.#grants.filter(({ role, grant, place }) => {
      const fault = policyFault(documentOf([{ role, grant, place }], tenant), catalog);
      if (fault !== null) report(place, 'lost', `the access policy grants nobody anything: ${fault}`, 'high');
      return fault === null;
    });
    return documentOf(fits, tenant);
  }
}

function documentOf(grants: readonly GrantDraft[], tenant: string): PolicyDocument {
  const roles: Record<string, { grants: GrantDocument[] }> = Object.create(null);
  for (const { role, grant } of grants) {
    const known = roles[role];
    if (known === undefined) roles[role] = { grants: [grant] };
    else known.grants.push(grant);
  }
  return { version: 1, tenant, subjects: {}, roles, masks: {} };
}

/** Why a policy does not fit a catalog; null where it does. */
export function policyFault(document: PolicyDocument, catalog: Catalog): string | null {
  try {
    compileSnapshot(document, catalog);
    return null;
  } catch (error) {
    if (error instanceof PolicyProblems) return error.problems[0]?.message ?? error.message;
    throw error;
  }
}
