// The metadata tree: its subtrees with those who observe them, and from there
// down, node by node.

import { useCallback } from "preact/hooks";
import { tell, useShared } from "../context.js";
import { useLook } from "./look.js";

/** A part of the tree with numbers of its own. */
interface Subtree {
  path: string;
  seq: number;
  nodes: number;
  bytes: number;
  sessions: number;
  observers: number;
}

interface Node {
  path: string;
  created: number;
  modified: number;
  children: number;
  ephemeral: boolean;
  bytes: number;
  value?: string;
  value_base64?: string;
}

interface Page {
  subtree: string;
  node: Node | null;
  children: Node[];
  /** There are more than these. */
  more: boolean;
}

/** The page of a node. */
const nodePage = (path: string) => `#/console/tree/${encodeURIComponent(path)}`;

export function TreeView({ path }: { path: string }) {
  const { words, client } = useShared();
  const look = useCallback(async () => {
    const [page, { subtrees }] = await Promise.all([
      client.json<Page>("GET", "/v1/meta/nodes", { query: { path } }),
      client.json<{ subtrees: Subtree[] }>("GET", "/v1/meta/subtrees"),
    ]);
    return { page, subtrees };
  }, [client, path]);
  const { seen, problem } = useLook(look);
  return (
    <>
      <Steps path={path} />
      {problem && (
        <div class="empty" role="alert">
          <p>{tell(words, problem)}</p>
        </div>
      )}
      {!problem && !seen && <p class="wait">{words.loading}</p>}
      {seen && path === "/" && <Subtrees subtrees={seen.subtrees} />}
      {seen && path !== "/" && <Look page={seen.page} />}
    </>
  );
}

/** The way from the top to here. */
function Steps({ path }: { path: string }) {
  const { words } = useShared();
  const names = path.split("/").filter((name) => name);
  const upTo = (at: number) => `/${names.slice(0, at + 1).join("/")}`;
  return (
    <nav class="steps" aria-label={words.tree}>
      <a class="step" href="#/console/tree">
        /
      </a>
      {names.map((name, at) => (
        <a
          key={upTo(at)}
          class="step"
          href={nodePage(upTo(at))}
          aria-current={at === names.length - 1 ? "page" : undefined}
        >
          {name}
        </a>
      ))}
    </nav>
  );
}

function Subtrees({ subtrees }: { subtrees: readonly Subtree[] }) {
  const { words } = useShared();
  if (subtrees.length === 0) return <p class="empty">{words.noSubtrees}</p>;
  return (
    <div class="wide">
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">{words.subtree}</th>
            <th scope="col">{words.changes}</th>
            <th scope="col">{words.nodes}</th>
            <th scope="col">{words.bytes}</th>
            <th scope="col">{words.sessions}</th>
            <th scope="col">{words.observers}</th>
          </tr>
        </thead>
        <tbody>
          {subtrees.map((subtree) => (
            <tr key={subtree.path} data-subtree={subtree.path}>
              <th scope="row">
                <a href={nodePage(subtree.path)}>{subtree.path}</a>
              </th>
              <td>{subtree.seq}</td>
              <td>{subtree.nodes}</td>
              <td>{subtree.bytes}</td>
              <td>{subtree.sessions}</td>
              <td>{subtree.observers}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A node, and the first of its children. */
function Look({ page: { node, children, more } }: { page: Page }) {
  const { words } = useShared();
  return (
    <>
      {node && (
        <>
          <pre class="value">{node.value ?? node.value_base64}</pre>
          <p class="faint">
            {`${words.created} ${node.created} · ${words.modified} ${node.modified}`}
            {node.ephemeral && ` · ${words.ephemeral}`}
          </p>
        </>
      )}
      {children.length > 0 && (
        <div class="wide">
          <table class="figures">
            <thead>
              <tr>
                <th scope="col">{words.node}</th>
                <th scope="col">{words.created}</th>
                <th scope="col">{words.modified}</th>
                <th scope="col">{words.nodes}</th>
                <th scope="col">{words.bytes}</th>
              </tr>
            </thead>
            <tbody>
              {children.map((child) => (
                <tr key={child.path} data-node={child.path}>
                  <th scope="row">
                    <a href={nodePage(child.path)}>{child.path.split("/").at(-1)}</a>
                    {child.ephemeral && <small>{` ${words.ephemeral}`}</small>}
                  </th>
                  <td>{child.created}</td>
                  <td>{child.modified}</td>
                  <td>{child.children}</td>
                  <td>{child.bytes}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {more && <p class="faint">{words.andMore}</p>}
    </>
  );
}
