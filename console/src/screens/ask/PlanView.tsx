import type { Plan } from '../../../../clients/typescript/types.js';
import { type PlanTreeNode, planTree } from './plan-tree.js';

/** Plan of a query, and the grants that apply to it. */
export function PlanView({ plan }: { readonly plan: Plan }) {
  return (
    <div className="plan">
      <section className="stack">
        <h2>Steps</h2>
        <ul className="plan-tree">
          <Node node={planTree(plan.plan)} />
        </ul>
      </section>
      <section className="stack">
        <h2>Reads</h2>
        <p>
          {plan.objects.length === 0 && 'nothing of the model'}
          {plan.objects.map((object) => (
            <code key={object} className="pill plan-fact">
              {object}
            </code>
          ))}
        </p>
        <h2>Grants used</h2>
        <p>
          {plan.grants.length === 0 && 'none'}
          {plan.grants.map((grant) => (
            <code key={grant} className="pill plan-fact">
              {grant}
            </code>
          ))}
        </p>
        {plan.redacted_columns.length > 0 && (
          <>
            <h2>Masked for you</h2>
            <p>
              {plan.redacted_columns.map((column) => (
                <code key={column} className="pill plan-fact masked">
                  {column}
                </code>
              ))}
            </p>
          </>
        )}
        {(plan.notices ?? []).map((notice) => (
          <p key={notice} className="plan-notice warn">
            {notice}
          </p>
        ))}
        {(plan.deprecated ?? []).map(({ object, reason }) => (
          <p key={object} className="plan-notice warn">
            <code>{object}</code> is deprecated: {reason}
          </p>
        ))}
        {plan.sql !== undefined && (
          <>
            <h2>SQL sent to the database</h2>
            <pre className="box plan-sql">{plan.sql}</pre>
          </>
        )}
      </section>
    </div>
  );
}

function Node({ node }: { readonly node: PlanTreeNode }) {
  return (
    <li>
      <div className="plan-step">
        <strong>{node.title}</strong>
        {node.facts.map(({ text, tone }) => (
          <span
            key={text}
            className={`pill plan-fact ${tone === 'plain' ? '' : tone === 'masked' ? 'masked' : 'plan-filtered'}`}
          >
            {text}
          </span>
        ))}
      </div>
      {node.below.length > 0 && (
        <ul>
          {node.below.map((below, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: steps are identified by position.
            <Node key={i} node={below} />
          ))}
        </ul>
      )}
    </li>
  );
}
