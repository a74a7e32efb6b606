import { VISIBILITIES } from '../../../model/graph/index.js';
import { ACCESS_QUESTION, ACCESS_REQUEST, APPROVAL_VERDICT } from '../bodies/access.js';
import { count, flag, type JsonShape, list, object, oneOf, orNull, ref, text, textOrNull } from '../shape.js';

const VISIBILITY = {
  ...oneOf(...VISIBILITIES),
  description:
    '`clear` (unmasked), `partly_masked` (masked in some rows), `masked` (masked in all rows), `aggregates` (usable only in aggregates over groups) or `nothing`. The visibility of a relation is that of its most visible column.',
};
const VERSIONS = object({ manifest: text(), policy: text() });
const REQUEST_ID = text('ID of this request, also in the audit log.');
const NAMES = (description?: string) => list(text(), description);

const ROLE_REASON = object({
  role: text(),
  counts: flag(),
  declared: flag('True if the policy declares the role.'),
  beyond: NAMES(
    'Subjects of the chain that do not have the role in their ceiling. If there are any, the role has no effect.',
  ),
});

const GRANT_REASON = object({
  rule: text('Path of the grant in the policy file, such as `roles.sales.grants[0]`.'),
  id: text('Opaque ID of the grant, as in plans and in answers of `/osl/why`.'),
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
      'Conditions of the grant as written in the policy file: `starts`, `ends`, `when`, `for`, `break_glass`, `approval`; null if there are none.',
  } as JsonShape),
  counts: flag('True if the grant is in effect under the given circumstances, such as the time and address.'),
  lacking: list(
    object({ subject: text(), attribute: text() }),
    'Attributes that the row filter reads and a subject of the chain does not have. If there are any, the grant shows no rows.',
  ),
});

const DENY_REASON = object({
  rule: text(),
  role: text(),
  columns: orNull(NAMES('Denied columns; null if the whole relation is denied.')),
  held_by: NAMES(
    'Subjects of the chain with the role in their ceiling. One of them is enough for the rule to apply.',
  ),
});

const ROW_REASON = object({
  key: NAMES(),
  visible: flag('True if the caller sees the row; false also if the row does not exist.'),
  shown_by: NAMES('Paths of the grants that show the row.'),
  taken_away_by: NAMES(
    'Subjects that each hide the row: if one of them is removed, the rest of the chain sees it. Empty if the row is visible.',
  ),
});

const EXPLANATION = object(
  {
    request_id: REQUEST_ID,
    object: text(),
    chain: NAMES('Delegation chain of the hypothetical caller, root first.'),
    sees: VISIBILITY,
    label: textOrNull(
      'Sensitivity label of the column; null if the column has none or the object is a relation.',
    ),
    mask: textOrNull(
      'Mask for the label, applied unless a grant unmasks the column; `deny` if the policy defines none, null without a label.',
    ),
    columns: list(
      object({ name: text(), sees: VISIBILITY }),
      'Visible columns of a relation; empty if the object is a column.',
    ),
    taken_away_by: list(
      object({ subject: text(), would_see: VISIBILITY }),
      'Subjects that each restrict the visibility: if one of them is removed, the rest of the chain sees more.',
    ),
    because: NAMES('Reasons in plain text, one per rule or subject.'),
    roles: list(ROLE_REASON),
    grants: list(GRANT_REASON),
    denials: list(DENY_REASON),
    row: orNull(ROW_REASON),
    versions: VERSIONS,
  },
  'Visibility of an object for a hypothetical caller, with every rule that affects it.',
);

const WHY = object(
  {
    request_id: REQUEST_ID,
    object: text(),
    sees: VISIBILITY,
    masked_as: textOrNull(
      'Appearance of masked values, in words; null if nothing is masked, or if the policy defines no mask for the object.',
    ),
    because: NAMES('Reasons in plain text, based only on the caller’s own rights.'),
    grants: NAMES('Opaque IDs of the caller’s grants on the object.'),
    versions: VERSIONS,
  },
  'Visibility of an object for the caller, with the reasons.',
);

const ACCESS_REQUESTED = object(
  {
    request_id: REQUEST_ID,
    delivered: flag(
      'True if the request was delivered to the owner’s webhook; false if no webhook is configured.',
    ),
    approval: orNull(
      object({
        id: text('ID of the approval request.'),
        url: text(
          'URL at which approvers decide: a page of the console or, without a console, `/osl/approvals`. A path on this server if OSL_PUBLIC_URL is not set.',
        ),
        expires_at: text('Time, RFC 3339, until which the request can be decided.'),
      }),
    ),
  },
  'Confirmation of an access request; the same for objects that do not exist.',
);

const APPROVAL_STATE = {
  ...oneOf('open', 'approved', 'declined', 'revoked'),
  description: 'State of an approval request.',
};
const ENDS_AT = textOrNull(
  'Time, RFC 3339, at which the approval ends or was ended; null if the request was not approved.',
);

const APPROVAL = object(
  {
    id: text(),
    state: APPROVAL_STATE,
    requested_at: text(),
    expires_at: text('Time, RFC 3339, until which the request can be decided.'),
    chain: NAMES('Delegation chain of the requester, root first.'),
    purpose: textOrNull('Purpose to which the approval is limited; null for no limit.'),
    task: textOrNull('Task that the request was part of; null if it named none.'),
    reason: textOrNull(
      'Reason for the request; null for administrators who neither made the request nor may decide it.',
    ),
    statement_shape: textOrNull('Statement to approve, without literals; null if an object was requested.'),
    statement: textOrNull(
      'Statement as written; null in the same cases as `reason`, or if an object was requested.',
    ),
    grants: list(
      object({
        on: text(),
        grant: orNull({
          type: 'object',
          description:
            'Grant as written in the policy file; null if the caller may not decide, or if `changed` is true.',
        } as JsonShape),
        changed: flag('True if the grant has been changed or removed since the request.'),
      }),
    ),
    minutes: count('Maximum duration of the approval, in minutes.'),
    decided_by: textOrNull(),
    decided_at: textOrNull(),
    ends_at: ENDS_AT,
    for_task: flag('True if the approval applies only to `task`.'),
    revoked_by: textOrNull(),
    may_decide: flag('True if the caller may decide the request, or end its approval.'),
  },
  'A request for approval, with the decision.',
);

export const ACCESS: readonly (readonly [string, JsonShape])[] = [
  ['AccessQuestion', ACCESS_QUESTION],
  ['AccessExplanation', EXPLANATION],
  ['Why', WHY],
  ['AccessRequest', ACCESS_REQUEST],
  ['AccessRequested', ACCESS_REQUESTED],
  ['Approval', APPROVAL],
  ['ApprovalList', object({ request_id: REQUEST_ID, approvals: list(ref('Approval')) })],
  ['ApprovalVerdict', APPROVAL_VERDICT],
  [
    'ApprovalDecided',
    object({ request_id: REQUEST_ID, id: text(), state: APPROVAL_STATE, ends_at: ENDS_AT }),
  ],
];
