import { VISIBILITIES } from '../../../model/graph/index.js';
import { ACCESS_QUESTION, ACCESS_REQUEST, APPROVAL_VERDICT } from '../bodies/access.js';
import { count, flag, type JsonShape, list, object, oneOf, orNull, ref, text, textOrNull } from '../shape.js';

const SEES = {
  ...oneOf(...VISIBILITIES),
  description:
    'Visibility: `clear` (unmasked), `partly_masked` (masked in some rows), `masked` (masked in all rows), `aggregates` (usable only in aggregates over groups) or `nothing`. A relation has that of its most visible column.',
};
const VERSIONS = object({ manifest: text(), policy: text() });
const REQUEST_ID = text('ID of this request, also in the audit log.');
const NAMES = (description?: string) => list(text(), description);

const ROLE_REASON = object({
  role: text(),
  counts: flag(),
  declared: flag('True if the policy declares the role.'),
  beyond: NAMES(
    'Subjects of the chain that do not have the role in their ceiling; if there are any, the role has no effect.',
  ),
});

const GRANT_REASON = object({
  rule: text('Path of the grant in the policy file: `roles.sales.grants[0]`.'),
  id: text('Opaque ID of the grant, as in a plan and in the answer of `/osl/why`.'),
  role: text(),
  columns: {
    type: ['string', 'array'],
    items: { type: 'string' },
    description: 'List of column names, or `*` for all columns.',
  } as JsonShape,
  rows: textOrNull('Row filter as written in the policy file; null if the grant shows all rows.'),
  unmask: NAMES(),
  min_group_size: orNull(count()),
  conditions: orNull({
    type: 'object',
    description:
      'Conditions of the grant as written in the policy file: `starts`, `ends`, `when`, `for`, `break_glass`, `approval`; null if it always applies.',
  } as JsonShape),
  counts: flag('True if the grant is in effect under the circumstances of the question.'),
  lacking: list(
    object({ subject: text(), attribute: text() }),
    'Attributes that the row filter reads but a subject of the chain does not have; the grant then shows no rows.',
  ),
});

const DENY_REASON = object({
  rule: text(),
  role: text(),
  columns: orNull(NAMES('Denied columns; null if the whole relation is denied.')),
  held_by: NAMES(
    'Subjects of the chain with the role in their ceiling; one is enough for the rule to apply.',
  ),
});

const ROW_REASON = object({
  key: NAMES(),
  visible: flag('True if the caller sees the row; false also if the row does not exist.'),
  shown_by: NAMES('Paths of the grants that show the row.'),
  taken_away_by: NAMES(
    'Subjects each of which hides the row: without that subject, the rest of the chain would see it. Empty if the row is visible.',
  ),
});

const EXPLANATION = object(
  {
    request_id: REQUEST_ID,
    object: text(),
    chain: NAMES('Delegation chain of the hypothetical caller, root first.'),
    sees: SEES,
    label: textOrNull(
      'Sensitivity label of the column; null if it has none, or if the object is a relation.',
    ),
    mask: textOrNull(
      'Mask that the policy defines for the label, applied unless a grant unmasks it; null without a label.',
    ),
    columns: list(
      object({ name: text(), sees: SEES }),
      'Visible columns of a relation; empty if the object is a column.',
    ),
    taken_away_by: list(
      object({ subject: text(), would_see: SEES }),
      'Subjects each of which restricts the visibility: without that subject, the rest of the chain would see more.',
    ),
    because: NAMES('Reasons in plain text, one per rule or subject.'),
    roles: list(ROLE_REASON),
    grants: list(GRANT_REASON),
    denials: list(DENY_REASON),
    row: orNull(ROW_REASON),
    versions: VERSIONS,
  },
  'Visibility of an object for a hypothetical caller, with every rule that concerns it.',
);

const WHY = object(
  {
    request_id: REQUEST_ID,
    object: text(),
    sees: SEES,
    masked_as: textOrNull(
      'Form of a masked value, in words; null if nothing is masked, or if the object has no label of its own.',
    ),
    because: NAMES('Reasons in plain text, derived only from the caller’s own rights.'),
    grants: NAMES('Opaque IDs of the caller’s grants on the object.'),
    versions: VERSIONS,
  },
  'Visibility of an object for the caller, with the reasons.',
);

const REQUESTED = object(
  {
    request_id: REQUEST_ID,
    delivered: flag(
      'True if the request was delivered to the owner’s webhook; false if none is configured, so that it is only in the audit log.',
    ),
    approval: orNull(
      object({
        id: text('ID of the approval request.'),
        url: text(
          'Where approvers decide: a page of the console or, without a console, `/osl/approvals`. Without OSL_PUBLIC_URL, a path on this server.',
        ),
        expires_at: text('RFC 3339 time until which it can be decided.'),
      }),
    ),
  },
  'Confirmation of an access request; the same for objects that do not exist.',
);

const APPROVAL_STATE = {
  ...oneOf('open', 'approved', 'declined', 'revoked'),
  description: 'State of an approval request.',
};
const ENDS_AT = textOrNull('RFC 3339 time at which the approval ends; null if there is none.');

const APPROVAL = object(
  {
    id: text(),
    state: APPROVAL_STATE,
    requested_at: text(),
    expires_at: text('RFC 3339 time until which it can be decided.'),
    chain: NAMES('Delegation chain of the requester, root first.'),
    purpose: textOrNull('Purpose to which the approval is limited.'),
    task: textOrNull('Task that the request names.'),
    reason: textOrNull('Null for administrators who may not decide.'),
    statement_shape: textOrNull('The statement without literals; null if an object was requested.'),
    statement: textOrNull('The statement as written; null for administrators who may not decide.'),
    grants: list(
      object({
        on: text(),
        grant: orNull({
          type: 'object',
          description: 'The grant as in the policy file; null for those who may not decide.',
        } as JsonShape),
        changed: flag('True if the policy no longer has this grant.'),
      }),
    ),
    minutes: count('Longest approval, in minutes.'),
    decided_by: textOrNull(),
    decided_at: textOrNull(),
    ends_at: ENDS_AT,
    for_task: flag('True if the approval is only for the task.'),
    revoked_by: textOrNull(),
    may_decide: flag('True if the caller may decide it, or end the approval.'),
  },
  'A request for approval, and the decision.',
);

export const ACCESS: readonly (readonly [string, JsonShape])[] = [
  ['AccessQuestion', ACCESS_QUESTION],
  ['AccessExplanation', EXPLANATION],
  ['Why', WHY],
  ['AccessRequest', ACCESS_REQUEST],
  ['AccessRequested', REQUESTED],
  ['Approval', APPROVAL],
  ['ApprovalList', object({ request_id: REQUEST_ID, approvals: list(ref('Approval')) })],
  ['ApprovalVerdict', APPROVAL_VERDICT],
  [
    'ApprovalDecided',
    object({ request_id: REQUEST_ID, id: text(), state: APPROVAL_STATE, ends_at: ENDS_AT }),
  ],
];
