import type { OperationId } from '../../../operations/operations.ts';
import type { Text } from '../../../platform/texts/text.ts';
import type { ChangedMeanwhile } from '../elements/changed-meanwhile.ts';
import { type ConfirmView, confirmPage } from '../errors/confirm-page.ts';
import type { BoundPages, Changes, ModelOf } from './binding.ts';

type Parameters = Readonly<Record<string, string>>;

/** How one kind of thing is deleted. */
interface Deletion<ViewId extends OperationId> {
  /** Reads what is asked about. */
  readonly view: ViewId;
  readonly operation: OperationId;
  readonly question: (
    model: ModelOf<ViewId>,
    params: Parameters,
  ) => Pick<
    ConfirmView,
    'title' | 'consequences' | 'label' | 'action' | 'cancelUrl' | 'typeToConfirm'
  >;
  /** The version that is deleted, and what it is now for who was asked about another one. */
  readonly versioned?: (model: ModelOf<ViewId>) => {
    readonly version: string;
    readonly now: ChangedMeanwhile['now'];
  };
  /** Throws `bad_request` where a question was not answered as it must be. */
  readonly check?: (sent: URLSearchParams, params: Parameters) => void;
  readonly changes?: (params: Parameters) => Changes;
  readonly done: (params: Parameters) => { readonly to: string; readonly say: Text };
}

/** Asks before something is deleted, and again when somebody has changed meanwhile what was asked about. */
export function bindDeletion<ViewId extends OperationId>(
  { page, form }: Pick<BoundPages, 'page' | 'form'>,
  path: string,
  deletion: Deletion<ViewId>,
): void {
  const again = page(path, deletion.view, ({ layout, model, params, failure }) => {
    const versioned = deletion.versioned?.(model);
    const question = deletion.question(model, params);
    return confirmPage({
      layout,
      ...question,
      fields: { version: versioned?.version },
      problem: failure?.problem,
      changed: failure?.changed && versioned && { by: failure.changed.by, now: versioned.now },
    });
  });
  form(path, deletion.operation, {
    again,
    ...(deletion.check && { check: deletion.check }),
    ...(deletion.changes && { changes: deletion.changes }),
    done: ({ params }) => deletion.done(params),
  });
}
