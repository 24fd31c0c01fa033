// One topic: what it is computed from, its partitions with those who read
// them, how fast it grows, and its newest records as they come.

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { tell, useShared } from "../context.js";
import type { Lag, Reader, Topic } from "./figures.js";
import { topicPage } from "./graph.js";
import { useLook } from "./look.js";
import { newer, type Places, RECORDS_MAX, type Rec, told } from "./records.js";

interface Props {
  topic: Topic;
  /** Of the view that has the topic's name. */
  lag: Lag | undefined;
  /** Topics that are computed from it. */
  derived: readonly Topic[];
  /** Its charts. */
  children: ComponentChildren;
}

export function TopicView({ topic, lag, derived, children }: Props) {
  const { words } = useShared();
  return (
    <>
      <h2 data-open={topic.name}>{topic.name}</h2>
      <dl class="facts">
        <dt>{words.origin}</dt>
        <dd>{topic.source ? <a href={topicPage(topic.source)}>{topic.source}</a> : words.own}</dd>
        {derived.length > 0 && (
          <>
            <dt>{words.derived}</dt>
            <dd>
              {derived.map(({ name }) => (
                <a key={name} href={topicPage(name)}>
                  {name}
                </a>
              ))}
            </dd>
          </>
        )}
        {topic.operator !== undefined && (
          <>
            <dt>{words.operator}</dt>
            <dd>
              <code>{JSON.stringify(topic.operator)}</code>
            </dd>
          </>
        )}
      </dl>
      {children}
      <Records topic={topic} />
      <Partitions topic={topic} lag={lag} />
    </>
  );
}

/** Where partitions begin and end, and who reads them. */
function Partitions({ topic, lag }: { topic: Topic; lag: Lag | undefined }) {
  const { words, client } = useShared();
  const path = `/v1/topics/${encodeURIComponent(topic.name)}/readers`;
  const look = useCallback(
    () => client.json<{ readers: Reader[]; more: boolean }>("GET", path),
    [client, path],
  );
  const { seen } = useLook(look);
  const kept = topic.bounds.filter((bounds) => bounds.synced > 0);
  const readers = seen?.readers ?? [];
  return (
    <>
      <h3>{words.bounds}</h3>
      {kept.length === 0 && <p class="empty">{words.empty}</p>}
      {kept.length > 0 && (
        <div class="wide">
          <table class="figures">
            <thead>
              <tr>
                <th scope="col">{words.partition}</th>
                <th scope="col">{words.epoch}</th>
                <th scope="col">{words.start}</th>
                <th scope="col">{words.head}</th>
                <th scope="col">{words.behind}</th>
              </tr>
            </thead>
            <tbody>
              {kept.map(({ partition, epoch, start, synced }) => (
                <tr key={partition} data-partition={partition}>
                  <th scope="row">{partition}</th>
                  <td>{epoch}</td>
                  <td>{start}</td>
                  <td>{synced}</td>
                  <td>{lag?.get(partition) ?? "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <h3>{words.readers}</h3>
      {readers.length === 0 && <p class="empty">{words.noReaders}</p>}
      {readers.length > 0 && (
        <div class="wide">
          <table class="figures">
            <thead>
              <tr>
                <th scope="col">{words.reader}</th>
                <th scope="col">{words.partition}</th>
                <th scope="col">{words.covered}</th>
                <th scope="col">{words.readerBehind}</th>
              </tr>
            </thead>
            <tbody>
              {readers.map((reader) => (
                <tr key={`${reader.caller} ${reader.partition} ${reader.since_ms}`} data-reader>
                  <th scope="row">{reader.caller}</th>
                  <td>{reader.partition}</td>
                  <td>{reader.covered}</td>
                  <td>{reader.behind}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/** The newest records, the newest first, until they are held still. */
function Records({ topic }: { topic: Topic }) {
  const { words, client, language } = useShared();
  const [records, setRecords] = useState<readonly Rec[]>([]);
  const [problem, setProblem] = useState<Error | null>(null);
  const [still, setStill] = useState(false);
  const places = useRef<Places>(new Map());

  // A topic that was looked at again may have more.
  useEffect(() => {
    if (still) return;
    let here = true;
    const { name, bounds, incarnation } = topic;
    newer(client, name, bounds, incarnation, places.current).then(
      (found) => {
        if (!here) return;
        places.current = found.places;
        setProblem(null);
        setRecords((old) => [...found.records.reverse(), ...old].slice(0, RECORDS_MAX));
      },
      (error: Error) => here && setProblem(error),
    );
    return () => {
      here = false;
    };
  }, [client, topic, still]);

  const time = new Intl.DateTimeFormat(language, { timeStyle: "medium" });
  return (
    <>
      <div class="title-line">
        <h3>{words.newest}</h3>
        <button type="button" aria-pressed={still} onClick={() => setStill(!still)}>
          {still ? words.goOn : words.holdStill}
        </button>
      </div>
      {problem && <p role="alert">{tell(words, problem)}</p>}
      {!problem && records.length === 0 && <p class="empty">{words.empty}</p>}
      <ol class="records">
        {records.map((record, at) => (
          <li key={`${record.partition} ${record.epoch} ${record.seq} ${at - records.length}`}>
            <span class="at">
              {`${record.partition}:${record.seq}`} <time>{time.format(record.time_ms)}</time>
            </span>
            <b>{record.key ?? record.key_base64}</b>
            <code>{told(record)}</code>
          </li>
        ))}
      </ol>
    </>
  );
}
